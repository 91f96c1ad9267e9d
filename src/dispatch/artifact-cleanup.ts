import { messageOf } from '../core/errors.js';
import { usesOf } from '../store/artifact-uses.js';
import { forgetBytes } from '../store/artifacts.js';
import {
  BEFORE_ALL_ARTIFACTS,
  type Forgettable,
  type ForgettablePosition,
  findForgettable,
  forgetArtifact,
  isJobThere,
} from '../store/forget-artifacts.js';
import type { LeaderState } from './leader-state.js';

/** Artifacts that one statement reads, and those that one pass looks at: each may take reading all definitions of its tenant. */
const READ_AT_ONCE = 50;
const MOST = 500;
/** How long a pass may take; the next one goes on where it ended. */
const PASS_MS = 5_000;

/**
 * Forgets artifacts by rule: pending ones whose time for an upload is over, and after the retention of history those without a
 * name that nothing has named meanwhile, and what jobs left that are not in history any more. What a live job, a task, a schedule
 * or a definition names stays. Goes round, so that what is looked at in vain is looked at again when all others were.
 */
export class ArtifactCleanup {
  private position: ForgettablePosition = BEFORE_ALL_ARTIFACTS;

  constructor(private readonly state: LeaderState) {}

  async runOnce(): Promise<void> {
    const { state } = this;
    if (state.artifacts === null) return;
    const now = state.clock.now();
    const bounds = { expiredBefore: now, usedBefore: now - state.config.historyRetention };
    const until = performance.now() + PASS_MS;
    for (let looked = 0; looked < MOST && performance.now() < until && !state.isOver; ) {
      const page = await findForgettable(state.pool, this.position, bounds, READ_AT_ONCE);
      for (const each of page) {
        await this.forget(each).catch((error: unknown) =>
          state.log.warn(
            { artifact: each.id, error: messageOf(error) },
            'an artifact could not be removed; it is tried again',
          ),
        );
        this.position = { state: each.state, usedAt: each.used_at, id: each.id };
      }
      looked += page.length;
      if (page.length === READ_AT_ONCE) continue;
      this.position = BEFORE_ALL_ARTIFACTS;
      return;
    }
  }

  private async forget(artifact: Forgettable): Promise<void> {
    const { state } = this;
    const { id, tenant, sha256, job } = artifact;
    const store = state.artifacts!;
    if (artifact.state !== 'gone') {
      if (job !== null && (await isJobThere(state.pool, tenant, job))) return;
      if ((await usesOf(state.pool, artifact, 1)).length > 0) return;
      if (!(await state.write(() => forgetArtifact(state.hot, state.term, artifact)))) return;
    }
    await this.whileTermLasts(async () => {
      await store.abandon(id);
      await forgetBytes(state.pool, sha256, (signal) => store.remove(sha256, signal));
    });
  }

  /** A store that does not answer must not hold up the end of a term. What was begun may be finished by any node. */
  private whileTermLasts(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const forget = this.state.term.onOver(() => resolve());
      work().then(resolve, reject).finally(forget);
    });
  }
}
