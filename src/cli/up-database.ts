import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import { isDiskFull } from '../embedded/embedded-failure.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/embedded-postgres.js';

/** The database of `punctual up`. */
export interface UpDatabase {
  readonly url: string;
  stop(): Promise<void>;
}

const RESTART_PAUSE_MS = 1_000;
const RESTART_TRIES = 5;
/** The additional pause when the disk is full. */
const FULL_PAUSE_MS = 4_000;

/** A database that the user runs; it is neither started nor stopped here. */
export function ownDatabase(url: string): UpDatabase {
  return { url, stop: async () => undefined };
}

/**
 * The embedded Postgres, which is restarted after a crash. It keeps its port and password, so the nodes find it
 * again. When it cannot be restarted, `onLost` is called.
 */
export async function embeddedDatabase(
  dataFolder: string,
  report: (line: string) => void,
  onLost: (reason: string) => void,
): Promise<UpDatabase> {
  let stopping = false;
  let current: EmbeddedPostgres;
  let recovery: Promise<void> = Promise.resolve();
  const begin = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({
      dataFolder,
      log: report,
      onUnexpectedExit: (detail) => {
        report(detail);
        recovery = recover();
      },
    });
  const recover = async (): Promise<void> => {
    const { url } = current;
    for (let attempt = 1; attempt <= RESTART_TRIES && !stopping; attempt += 1) {
      try {
        await current.stop();
        await sleep(RESTART_PAUSE_MS);
        current = await begin();
        if (current.url === url) report('The embedded Postgres runs again');
        else onLost('The embedded Postgres had to move to another port');
        return;
      } catch (error) {
        report(`The embedded Postgres could not be started again: ${messageOf(error)}`);
        if (!isDiskFull(error)) continue;
        // The disk may have space again at any time, so this does not count as a try; stored data is safe meanwhile.
        attempt = 0;
        await sleep(FULL_PAUSE_MS);
      }
    }
    if (!stopping) onLost('The embedded Postgres could not be started again');
  };
  current = await begin();
  return {
    url: current.url,
    stop: async () => {
      stopping = true;
      await recovery;
      await current.stop();
    },
  };
}
