import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { Loop, logFailure } from '../core/loop.js';

/** How often the files are looked at. */
const LOOK_EVERY_MS = 5_000;
/** How long before its end a certificate is warned about, and how often. */
const WARN_BEFORE_MS = 14 * 86_400_000;
const WARN_EVERY_MS = 86_400_000;

/** A certificate with its chain, and its private key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Where a certificate is kept. */
export interface CertificatePaths {
  readonly cert: string;
  readonly key: string;
}

/** A certificate in files, which is read again when the files change: certificates are renewed while nodes run. */
export class CertificateFiles {
  #current: Certificate;
  #stamp: string;
  #warnedAt = Number.NEGATIVE_INFINITY;
  readonly #loop: Loop;
  #onChange: (certificate: Certificate) => void = () => undefined;

  constructor(
    private readonly paths: CertificatePaths,
    private readonly log: Log,
  ) {
    this.#stamp = stampOf(paths);
    this.#current = read(paths);
    this.#loop = new Loop({
      name: 'certificate',
      everyMs: LOOK_EVERY_MS,
      pass: async () => this.look(),
      onError: logFailure(log, 'the new certificate cannot be used; the old one stays'),
    });
    this.#warnOfEnd();
  }

  get current(): Certificate {
    return this.#current;
  }

  /** Looks for changes from now on. */
  watch(onChange: (certificate: Certificate) => void): void {
    this.#onChange = onChange;
    this.#loop.start();
  }

  /** One look at the files. If certificate and key do not fit, as in the middle of a change, the old ones stay. */
  look(): void {
    // A node may run for longer than its certificate is valid, and files that cannot be read do not make that better.
    if (Date.now() - this.#warnedAt >= WARN_EVERY_MS) this.#warnOfEnd();
    const stamp = stampOf(this.paths);
    if (stamp === this.#stamp) return;
    this.#current = read(this.paths);
    this.#stamp = stamp;
    this.#warnOfEnd();
    this.#onChange(this.#current);
    this.log.info({ certificate: this.paths.cert }, 'the certificate was read again');
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #warnOfEnd(): void {
    const { validTo } = new X509Certificate(this.#current.cert);
    this.#warnedAt = Date.now();
    if (Date.parse(validTo) - Date.now() > WARN_BEFORE_MS) return;
    this.log.warn({ certificate: this.paths.cert, validTo }, 'the certificate ends soon');
  }
}

/** Differs when a file was written again, or a link points to another file. */
function stampOf({ cert, key }: CertificatePaths): string {
  return [cert, key]
    .map((path) => {
      const { ino, mtimeMs, size } = reading(path, () => statSync(path));
      return `${ino}/${mtimeMs}/${size}`;
    })
    .join(' ');
}

function read(paths: CertificatePaths): Certificate {
  const cert = reading(paths.cert, () => readFileSync(paths.cert, 'utf8'));
  const key = reading(paths.key, () => readFileSync(paths.key, 'utf8'));
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const detail = `The certificate in ${paths.cert} and the key in ${paths.key} cannot be used together: ${messageOf(cause)}.`;
    throw new PunctualError('CONFIGURATION', detail, { cause });
  }
  return { cert, key };
}

function reading<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new PunctualError('CONFIGURATION', `${path} cannot be read: ${messageOf(cause)}.`, { cause });
  }
}

/** The certificates that `NODE_EXTRA_CA_CERTS` adds to those that Node trusts. */
export function extraCertificates(): string {
  const path = process.env.NODE_EXTRA_CA_CERTS;
  return path ? reading(path, () => readFileSync(path, 'utf8')) : '';
}
