import { setTimeout as sleep } from 'node:timers/promises';
import type { Effect, StaleProbe } from '../history.js';
import type { Client } from './client.js';
import type { EffectFiles } from './effect-files.js';

const EVERY_MS = 100;
const PROBES_AT_ONCE = 3;
/** The result that must never be found in a table. */
export const PROBE_RESULT = { staleProbe: true };

/** Reports success under fences that a newer attempt has replaced, and notes what the nodes say to it. */
export class StaleProber {
  readonly probes: StaleProbe[] = [];
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: Client,
    private readonly effects: EffectFiles,
  ) {}

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    let seen = 0;
    while (!this.#stopped) {
      this.effects.look();
      const fresh = this.effects.all.slice(seen);
      seen = this.effects.all.length;
      const replaced = fresh.filter((effect) => effect.kind === 'start' && effect.fence > 1);
      await Promise.all(replaced.slice(-PROBES_AT_ONCE).map((effect) => this.#probe(effect)));
      await sleep(EVERY_MS);
    }
  }

  async #probe({ job, fence }: Effect): Promise<void> {
    const old = fence - 1;
    try {
      const { status, body } = await this.client.ask('POST', `/v1/jobs/${job}/complete`, {
        fence: old,
        result: PROBE_RESULT,
      });
      const { code = '' } = (body ?? {}) as { code?: string };
      // While nobody leads there is no answer to judge.
      if (status < 500) this.probes.push({ job, fence: old, status, code });
    } catch {
      // A node that dies while it is asked has not answered either.
    }
  }
}
