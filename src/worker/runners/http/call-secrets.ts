import { asPunctualError } from '../../../core/errors.js';
import type { WorkerGateway } from '../../../core/gateway.js';
import type { Assignment, SecretsAnswer, SecretsRequest, SessionKey } from '../../../core/wire.js';
import { GrowingPause, pause } from '../../../transport/pause.js';
import type { CallDeadline } from './call-deadline.js';
import { CallError, refused } from './call-error.js';

/** How long signing secrets are used before they are asked for again; an old one stays valid for longer than that. */
const SIGNING_FRESH_MS = 30_000;
/** The most tenants whose signing secrets are kept. */
const MOST_TENANTS = 10_000;
/** The pauses between questions while no node can answer, as there is no leader. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 1_000];
/** Refusals that the next attempt would get, too. */
const PERMANENT: readonly string[] = ['FORBIDDEN', 'SECRET_NOT_FOUND', 'SECRET_ORIGIN'];

/** What a call needs to know that must not be stored with its job. */
export interface CallSecrets {
  /** What calls of a tenant are signed with, for a call without secrets; undefined if that must be asked for. */
  known(tenant: string): SecretsAnswer | undefined;
  /** The values of the secrets that the target of an attempt names, and what its calls are signed with. */
  resolve(
    assignment: Assignment,
    names: readonly string[],
    origin: string,
    deadline: Pick<CallDeadline, 'isEnded'>,
  ): Promise<SecretsAnswer>;
}

interface GatewaySecretsParts {
  readonly gateway: Pick<WorkerGateway, 'secrets' | 'triesAtOnce'>;
  /** The session of this worker. */
  readonly session: () => SessionKey;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

interface Signing {
  readonly at: number;
  readonly secrets: Promise<readonly string[]>;
  /** The same for all calls, once it is there. */
  answer?: SecretsAnswer;
}

/**
 * Asks a node for secrets, at the moment of the call. Values are never kept; signing secrets are kept per tenant for a short time,
 * because every call needs them.
 */
export class GatewaySecrets implements CallSecrets {
  readonly #parts: GatewaySecretsParts;
  readonly #signing = new Map<string, Signing>();

  constructor(parts: GatewaySecretsParts) {
    this.#parts = parts;
  }

  known(tenant: string): SecretsAnswer | undefined {
    return this.#kept(tenant)?.answer;
  }

  async resolve(
    assignment: Assignment,
    names: readonly string[],
    origin: string,
    deadline: Pick<CallDeadline, 'isEnded'>,
  ): Promise<SecretsAnswer> {
    const { tenant } = assignment;
    if (names.length > 0) {
      const answer = await this.#ask(assignment, names, origin, deadline);
      this.#keep(tenant, Promise.resolve(answer.signing));
      return answer;
    }
    for (let kept = this.#kept(tenant); kept; kept = this.#kept(tenant)) {
      // Whoever asked may have been refused for a reason of its own, such as the end of its attempt.
      const signing = await kept.secrets.catch(() => null);
      if (signing) return { values: {}, signing };
    }
    const asked = this.#ask(assignment, names, origin, deadline);
    this.#keep(
      tenant,
      asked.then(({ signing }) => signing),
    );
    return asked;
  }

  /** The signing secrets of a tenant, if they were asked for a short time ago. */
  #kept(tenant: string): Signing | undefined {
    const kept = this.#signing.get(tenant);
    return kept && this.#parts.now() - kept.at < SIGNING_FRESH_MS ? kept : undefined;
  }

  /** What was not answered is asked for again by the next call. */
  #keep(tenant: string, secrets: Promise<readonly string[]>): void {
    if (this.#signing.size >= MOST_TENANTS) this.#signing.clear();
    const kept: Signing = { at: this.#parts.now(), secrets };
    this.#signing.set(tenant, kept);
    secrets.then(
      (signing) => {
        kept.answer = { values: {}, signing };
      },
      () => {
        if (this.#signing.get(tenant) === kept) this.#signing.delete(tenant);
      },
    );
  }

  async #ask(
    { jobId, fence, token }: Assignment,
    names: readonly string[],
    origin: string,
    deadline: Pick<CallDeadline, 'isEnded'>,
  ): Promise<SecretsAnswer> {
    const request = { jobId, fence, names, ...(token !== undefined && { token }) };
    const answer = await this.#answerTo(request, deadline);
    const missing = names.find((name) => !Object.hasOwn(answer.values, name));
    if (missing !== undefined)
      throw refused('SECRET_NOT_FOUND', `There is no secret ${missing} for ${origin}.`);
    return answer;
  }

  /**
   * Asks until a node answers, because a change of leaders must not fail a call that was not made. A node without the master
   * key is no reason to wait, but another one may have it.
   */
  async #answerTo(request: SecretsRequest, deadline: Pick<CallDeadline, 'isEnded'>): Promise<SecretsAnswer> {
    const { gateway, session } = this.#parts;
    const growing = new GrowingPause(FIRST_PAUSE_MS, LONGEST_PAUSE_MS, gateway.triesAtOnce);
    for (;;) {
      try {
        return await gateway.secrets(session(), request);
      } catch (thrown) {
        const error = asPunctualError(thrown);
        const { code, message, status } = error;
        if (PERMANENT.includes(code)) throw refused(code, message);
        const pauseMs = growing.nextMs(error);
        const isHopeless = code === 'SECRETS_UNAVAILABLE' ? pauseMs > 0 : status !== 503;
        if (isHopeless || deadline.isEnded) throw unavailable(message);
        await pause(pauseMs);
      }
    }
  }
}

/** No node could answer, which may be otherwise the next time. */
function unavailable(message: string): CallError {
  return new CallError('SECRETS_UNAVAILABLE', message, { retryable: true });
}
