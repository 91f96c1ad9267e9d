import type { Duration } from '../core/duration.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { NewSigningSecret, SecretInput, SecretView, SigningSecretView } from '../core/secret.js';
import type { Transport } from '../transport/transport.js';
import { eachItem, PAGE_OPTIONS, type PageOptions } from './pages.js';

const SECRET: OptionNames<SecretInput> = { value: true, origins: true };

/** The secrets of the tenant, to which targets refer as `{ $secret: name }`. */
export class Secrets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Sets a secret and where it may be sent to. Its value cannot be read back; calls that begin later use it. */
  set(name: string, secret: SecretInput): Promise<SecretView> {
    checkOptions('secrets.set()', secret, SECRET);
    return this.#transport.request('PUT', secretPath(name), { body: secret, retry: true });
  }

  /** All secrets by name, without their values, read page by page. */
  list(options: PageOptions = {}): AsyncGenerator<SecretView, void, undefined> {
    checkOptions('secrets.list()', options, PAGE_OPTIONS);
    return eachItem(this.#transport, '/v1/secrets', {}, options);
  }

  /** Deletes a secret: calls that refer to it fail from now on. */
  delete(name: string): Promise<void> {
    return this.#transport.request('DELETE', secretPath(name));
  }
}

/** How a signing secret is made. */
export interface SigningSecretOptions {
  /** How long the others stay valid: from 1m to 90d, default 1d. */
  readonly keepOthersFor?: Duration;
}

const SIGNING: OptionNames<SigningSecretOptions> = { keepOthersFor: true };

/** The secrets with which the tenant's calls are signed, as Standard Webhooks. */
export class SigningSecrets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Makes the next signing secret, which is shown this once. Calls are signed with it and, for a while, with the others. */
  create(options: SigningSecretOptions = {}): Promise<NewSigningSecret> {
    checkOptions('signingSecrets.create()', options, SIGNING);
    return this.#transport.request('POST', '/v1/signing-secrets', { body: options });
  }

  /** The signing secrets that are valid, newest first, without their values. */
  list(options: PageOptions = {}): AsyncGenerator<SigningSecretView, void, undefined> {
    checkOptions('signingSecrets.list()', options, PAGE_OPTIONS);
    return eachItem(this.#transport, '/v1/signing-secrets', {}, options);
  }

  /** Ends a signing secret at once. */
  delete(id: string): Promise<void> {
    return this.#transport.request('DELETE', `/v1/signing-secrets/${encodeURIComponent(id)}`);
  }
}

function secretPath(name: string): string {
  return `/v1/secrets/${encodeURIComponent(name)}`;
}
