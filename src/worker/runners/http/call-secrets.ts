import { asPunctualError } from '../../../core/errors.js';
import type { WorkerGateway } from '../../../core/gateway.js';
import type { Assignment, SecretsAnswer, SessionKey } from '../../../core/wire.js';
import { CallError, refused } from './call-error.js';

/** How long signing secrets are used before they are asked for again; an old one stays valid for longer than that. */
const SIGNING_FRESH_MS = 30_000;
/** The most tenants whose signing secrets are kept. */
const MOST_TENANTS = 10_000;
/** Refusals that the next attempt would get, too. */
const PERMANENT: readonly string[] = ['FORBIDDEN', 'SECRET_NOT_FOUND', 'SECRET_ORIGIN'];

/** What a call needs to know that must not be stored with its job. */
export interface CallSecrets {
  /** The values of the secrets that the target of an attempt names, and what its calls are signed with. */
  resolve(assignment: Assignment, names: readonly string[], origin: string): Promise<SecretsAnswer>;
}

interface GatewaySecretsParts {
  readonly gateway: Pick<WorkerGateway, 'secrets'>;
  /** The session of this worker. */
  readonly session: () => SessionKey;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

interface Signing {
  readonly at: number;
  readonly secrets: Promise<readonly string[]>;
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

  async resolve(assignment: Assignment, names: readonly string[], origin: string): Promise<SecretsAnswer> {
    const { tenant } = assignment;
    const known = this.#signing.get(tenant);
    const isFresh = known !== undefined && this.#parts.now() - known.at < SIGNING_FRESH_MS;
    if (names.length === 0) {
      if (isFresh) return { values: {}, signing: await known.secrets };
      const asked = this.#ask(assignment, names, origin);
      this.#keep(
        tenant,
        asked.then(({ signing }) => signing),
      );
      return asked;
    }
    const answer = await this.#ask(assignment, names, origin);
    this.#keep(tenant, Promise.resolve(answer.signing));
    return answer;
  }

  /** What was not answered is asked for again by the next call. */
  #keep(tenant: string, secrets: Promise<readonly string[]>): void {
    if (this.#signing.size >= MOST_TENANTS) this.#signing.clear();
    const signing = { at: this.#parts.now(), secrets };
    this.#signing.set(tenant, signing);
    secrets.catch(() => {
      if (this.#signing.get(tenant) === signing) this.#signing.delete(tenant);
    });
  }

  async #ask(
    { jobId, fence, token }: Assignment,
    names: readonly string[],
    origin: string,
  ): Promise<SecretsAnswer> {
    const request = { jobId, fence, names, ...(token !== undefined && { token }) };
    const answer = await this.#parts.gateway.secrets(this.#parts.session(), request).catch((thrown) => {
      const { code, message } = asPunctualError(thrown);
      throw PERMANENT.includes(code) ? refused(code, message) : unavailable(message);
    });
    const missing = names.find((name) => !Object.hasOwn(answer.values, name));
    if (missing !== undefined)
      throw refused('SECRET_NOT_FOUND', `There is no secret ${missing} for ${origin}.`);
    return answer;
  }
}

/** No node could answer, which may be otherwise the next time. */
function unavailable(message: string): CallError {
  return new CallError('SECRETS_UNAVAILABLE', message, { retryable: true });
}
