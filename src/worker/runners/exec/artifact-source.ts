import { asPunctualError } from '../../../core/errors.js';
import type { WorkerGateway } from '../../../core/gateway.js';
import type { ArtifactAnswer, Assignment, SessionKey } from '../../../core/wire.js';
import { GrowingPause, pause } from '../../../transport/pause.js';
import type { ArtifactCache, CachedArtifact } from './artifact-cache.js';
import { ExecError } from './exec-error.js';

/** The pauses between tries while no node answers, or the store does not. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [100, 2_000];
/** How long a store may be away before the attempt fails, and another worker may try. */
const PATIENCE_MS = 60_000;

interface SourceParts {
  readonly gateway: Pick<WorkerGateway, 'artifact' | 'triesAtOnce'>;
  readonly session: () => SessionKey;
  readonly cache: ArtifactCache;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** Provides the binaries of attempts: asks a node what an attempt runs, and reads the bytes if they are not in the cache. */
export class ArtifactSource {
  readonly #parts: SourceParts;

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  /** The binary of an attempt. Tries again while nodes or the store are away for a moment, until the signal aborts. */
  async take(assignment: Assignment, signal: AbortSignal): Promise<CachedArtifact> {
    const { cache, now } = this.#parts;
    const until = now() + PATIENCE_MS;
    const growing = new GrowingPause(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    for (;;) {
      const answer = await this.#ask(assignment, signal);
      try {
        return await cache.take(answer, signal);
      } catch (error) {
        signal.throwIfAborted();
        const isAway = error instanceof ExecError && error.code === 'ARTIFACT_UNAVAILABLE';
        if (!isAway || now() > until) throw error;
        // The address may have expired, so it is asked for again, too.
        await pause(growing.nextMs(), signal);
        signal.throwIfAborted();
      }
    }
  }

  /** Asks until a node answers: a change of leaders must not fail a program that was not started. */
  async #ask({ jobId, fence, token }: Assignment, signal: AbortSignal): Promise<ArtifactAnswer> {
    const { gateway, session } = this.#parts;
    const growing = new GrowingPause(FIRST_PAUSE_MS, LONGEST_PAUSE_MS, gateway.triesAtOnce);
    for (;;) {
      signal.throwIfAborted();
      try {
        return await gateway.artifact(session(), { jobId, fence, ...(token !== undefined && { token }) });
      } catch (thrown) {
        const error = asPunctualError(thrown);
        const { code, message, status } = error;
        if (status !== 503) throw new ExecError(code, message, { retryable: code !== 'ARTIFACT_NOT_FOUND' });
        await pause(growing.nextMs(error), signal);
      }
    }
  }
}
