import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/**
 * Encryption of what tenants keep secret: AES-256-GCM under a master key that nodes are given and the database never sees. What a
 * value belongs to is authenticated with it, so a row that was copied to another tenant, name or version cannot be opened. The
 * first master key seals; all of them open, so that a key can be replaced while values under the old one exist.
 */

const KEY_BYTES = 32;
const KEY_ID_BYTES = 8;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The form of a master key, for errors that must not quote it. */
export const MASTER_KEY_FORM = '32 bytes in base64 or in hexadecimal digits (`openssl rand -base64 32`)';

/** The master keys of a setting, with commas between them; null if one of them is not 32 bytes. */
export function readMasterKeys(text: string): Buffer[] | null {
  const keys = text.split(',').map((part) => readMasterKey(part.trim()));
  return keys.every((key) => key !== null) ? keys : null;
}

function readMasterKey(text: string): Buffer | null {
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  // Node takes both alphabets of base64.
  return BASE64.test(text) ? Buffer.from(text, 'base64') : null;
}

/** A new master key, as it is written in a setting. */
export function makeMasterKey(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}

/** What a sealed value belongs to; signing secrets are kept apart from secrets of the same name. */
export interface SealedSubject {
  readonly kind: 'secret' | 'signing-secret';
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
}

/** A sealed value, and the id of the master key that it needs. */
export interface Sealed {
  readonly keyId: string;
  /** Initialisation vector, authentication tag and ciphertext, in this order. */
  readonly sealed: Buffer;
}

/** A value needs a master key that this node does not have. */
export class MissingMasterKey extends Error {
  constructor(readonly keyId: string) {
    super(`the master key ${keyId} is not known here`);
  }
}

/** Seals and opens values. */
export class SecretBox {
  readonly #keys = new Map<string, Buffer>();
  /** The id of the key that seals. */
  readonly keyId: string;

  /** The first key seals, all of them open. */
  constructor(keys: readonly Buffer[]) {
    const [first] = keys;
    if (!first || keys.some(({ length }) => length !== KEY_BYTES))
      throw new Error('a master key has 32 bytes');
    for (const key of keys) this.#keys.set(idOf(key), key);
    this.keyId = idOf(first);
  }

  /** The ids of all keys, the one that seals first. */
  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  seal(value: string, subject: SealedSubject): Sealed {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#keys.get(this.keyId)!, iv, {
      authTagLength: TAG_BYTES,
    });
    cipher.setAAD(associated(subject));
    const text = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
    return { keyId: this.keyId, sealed: Buffer.concat([iv, cipher.getAuthTag(), text]) };
  }

  /** The value; throws if its key is missing, or if anything about it or its subject was changed. */
  open({ keyId, sealed }: Sealed, subject: SealedSubject): string {
    const key = this.#keys.get(keyId);
    if (!key) throw new MissingMasterKey(keyId);
    if (sealed.length < IV_BYTES + TAG_BYTES) throw new Error('a sealed value is too short');
    const iv = sealed.subarray(0, IV_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
    decipher.setAAD(associated(subject));
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString(
      'utf8',
    );
  }
}

/** A key is random, so that its hash tells nothing about it. */
function idOf(key: Buffer): string {
  return createHash('sha256').update(key).digest().subarray(0, KEY_ID_BYTES).toString('hex');
}

/** A JSON list: no text in one place can look like the text of two places. */
function associated({ kind, tenant, name, version }: SealedSubject): Buffer {
  return Buffer.from(JSON.stringify([kind, tenant, name, version]), 'utf8');
}
