import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import { isDiskFull } from '../embedded/embedded-failure.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/embedded-postgres.js';

/** The database under `punctual up`. */
export interface UpDatabase {
  readonly url: string;
  stop(): Promise<void>;
}

const RESTART_PAUSE_MS = 1_000;
const RESTART_TRIES = 5;
/** How much longer it is waited when the disk is full. */
const FULL_PAUSE_MS = 4_000;

/** A database of the user's own: nothing to start and nothing to stop. */
export function ownDatabase(url: string): UpDatabase {
  return { url, stop: async () => undefined };
}

/**
 * The Postgres that comes along. It keeps its port and password, so when it is started again after a crash the
 * nodes find it where it was. When it cannot be, `onLost` is called: there is nothing left to run on.
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
        if (current.url === url) report('The embedded Postgres is back');
        else onLost('The embedded Postgres had to move to another port');
        return;
      } catch (error) {
        report(`The embedded Postgres could not be started again: ${messageOf(error)}`);
        if (!isDiskFull(error)) continue;
        // Whoever makes room would find everything ended; what was stored is safe meanwhile.
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
