import { createHash } from 'node:crypto';
import { PunctualError } from '../core/errors.js';
import { findKeys, hashKey, isGenuineKey, type KeyRow } from '../store/api-keys.js';
import type { Queryable } from '../store/database.js';
import type { KeyIdentity } from './caller.js';

/**
 * The keys that a node keeps in memory. Every change of a key raises one number in the database. A node that is asked about
 * keys reads that number at most once a second, ahead of time, and reads a key again only if the number has changed since.
 * A revoked key is therefore refused within about a second, counted from when the read was sent, and what it costs does not
 * depend on how many keys are in use. Without requests and open polls nothing is read.
 */

/** How old the number may be: a revoked key is refused after this time. */
const FRESH_MS = 1_000;
/** The age from which on the number is read again in the background. */
const RENEW_MS = 750;
/** How long keys are accepted that were valid when the database was last reached. */
const WITHOUT_DATABASE_MS = 30_000;
const MAX_KNOWN = 10_000;
/** Keys that one statement reads. */
const READ_AT_ONCE = 1_000;

/** A key that somebody came with. */
export class KnownKey {
  /** Its row, null if the database does not know it, undefined before it was read. */
  row: KeyRow | null | undefined;
  /** The number of the moment at which the row was read. */
  version = -1;
  /** The last moment of which it is known that the row was valid: when that read was sent. */
  confirmedAt = Number.NEGATIVE_INFINITY;
  /** The hour in which its use was last noted. */
  usedHour = -1;
  /** The read that is under way. */
  reading: Promise<void> | undefined;
  private owner: { readonly row: KeyRow; readonly identity: KeyIdentity } | undefined;

  constructor(
    readonly hash: Buffer,
    /** When it stops to count, whatever its row says: the end of a session. */
    readonly endsAt = Number.POSITIVE_INFINITY,
  ) {}

  /** Who comes with the key; the same object as long as the row is the same. */
  identity(row: KeyRow): KeyIdentity {
    if (this.owner?.row !== row) {
      const { endsAt } = this;
      const identity = identityOfKey(row);
      const isSession = endsAt !== Number.POSITIVE_INFINITY;
      this.owner = { row, identity: isSession ? { ...identity, sessionEndsAt: endsAt } : identity };
    }
    return this.owner.identity;
  }

  /** Its row, if it is valid at a moment of the database's clock. */
  validAt(now: number): KeyRow | null {
    const { row } = this;
    if (now >= this.endsAt) return null;
    return row && (row.expiresAt === null || row.expiresAt > now) ? row : null;
  }
}

interface Batch {
  readonly keys: KnownKey[];
  readonly done: Promise<void>;
}

export class KnownKeys {
  /** By digest, so that a dump of memory contains no keys; the least recently used first. */
  private readonly known = new Map<string, KnownKey>();
  private version = -1;
  /** When the read that found the number was sent. */
  private askedAt = Number.NEGATIVE_INFINITY;
  private renewing: Promise<void> | undefined;
  private batch: Batch | undefined;

  constructor(
    /** For look-ups of keys, which must not wait behind any traffic: workers would be taken for dead. */
    private readonly db: Queryable,
    private readonly secret: Buffer,
    /** Called when the number has changed, so that no key is known to be valid until it was read again. */
    private readonly onChanged: () => void = () => undefined,
  ) {}

  /** The key, as up to date as it must be; null for one that this cluster never made. */
  find(digest: string, key: string): Promise<KnownKey | null> | KnownKey | null {
    return this.lookUp(digest, () =>
      isGenuineKey(this.secret, key) ? new KnownKey(hashKey(this.secret, key)) : null,
    );
  }

  /** What is remembered under a digest, else what `make` finds genuine. */
  lookUp(digest: string, make: () => KnownKey | null): Promise<KnownKey | null> | KnownKey | null {
    let known = this.known.get(digest);
    if (known) this.known.delete(digest);
    else {
      const made = make();
      if (!made) return null;
      known = made;
      if (this.known.size >= MAX_KNOWN) this.forgetOldest();
    }
    this.known.set(digest, known);
    return this.isFresh(known) ? known : this.confirm(known);
  }

  /** Makes a key as up to date as it must be; rejects if that is impossible and it was not confirmed lately either. */
  async confirm(known: KnownKey, freshMs = FRESH_MS): Promise<KnownKey> {
    try {
      // Reading a key reads the number, too.
      if (this.isCurrent(known) && performance.now() - this.askedAt > freshMs) {
        const renewed = this.renew();
        await (this.isServable(known) ? soon(renewed) : renewed);
      }
      if (!this.isCurrent(known)) {
        const read = this.read(known);
        await (this.isServable(known) ? soon(read) : read);
      }
    } catch (error) {
      if (!this.isServable(known)) throw error;
    }
    // Nothing was heard in time: what is known counts for a while, but a key of which nothing is known does not.
    if (!this.isServable(known)) throw unconfirmed();
    return known;
  }

  /** Reads the number now: one that is being read may have been read before the last change. */
  refresh(): Promise<void> {
    return this.ask([], true);
  }

  /** Whether a key may be accepted or refused by what is known about it. */
  private isServable(known: KnownKey): boolean {
    if (known.row === undefined) return false;
    // Once it was refused it stays so until the database says otherwise.
    if (known.row === null) return true;
    return performance.now() - this.confirmedAt(known) <= WITHOUT_DATABASE_MS;
  }

  private confirmedAt(known: KnownKey): number {
    return this.isCurrent(known) ? Math.max(this.askedAt, known.confirmedAt) : known.confirmedAt;
  }

  /** Whether no key has changed since this one was read, as far as it is known: it may have been read after the number. */
  isCurrent(known: KnownKey): boolean {
    if (known.row === undefined) return false;
    return known.version === this.version || known.confirmedAt > this.askedAt;
  }

  /** Whether nothing has to be waited for; reads the number again in the background when it soon will be too old. */
  private isFresh(known: KnownKey): boolean {
    if (!this.isCurrent(known)) return false;
    const age = performance.now() - this.askedAt;
    if (age > FRESH_MS) return false;
    if (age > RENEW_MS) this.renew().catch(() => undefined);
    return true;
  }

  private forgetOldest(): void {
    for (const digest of this.known.keys()) {
      this.known.delete(digest);
      return;
    }
  }

  /** Reads the number, once for all who wait for it. */
  private renew(): Promise<void> {
    this.renewing ??= this.ask([], true).finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  /** Reads a key, together with others that are wanted at the same moment. */
  private read(known: KnownKey): Promise<void> {
    known.reading ??= this.gather(known).finally(() => {
      known.reading = undefined;
    });
    return known.reading;
  }

  private gather(known: KnownKey): Promise<void> {
    if (!this.batch || this.batch.keys.length >= READ_AT_ONCE) {
      const keys: KnownKey[] = [];
      const done = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        if (this.batch?.keys === keys) this.batch = undefined;
        return this.ask(keys);
      });
      this.batch = { keys, done };
    }
    this.batch.keys.push(known);
    return this.batch.done;
  }

  /**
   * Reads keys and the number. What comes with a key counts as the number only if that is due: all keys in use have to be read
   * again when it changes, and a tenant that makes and uses one key after the other must not cause that all the time.
   */
  private async ask(keys: readonly KnownKey[], isForNumber = false): Promise<void> {
    const askedAt = performance.now();
    const hashes = keys.map(({ hash }) => hash);
    const { version, found } = await findKeys(this.db, hashes);
    for (const known of keys) {
      known.row = found.get(known.hash.toString('base64')) ?? null;
      known.version = version;
      known.confirmedAt = askedAt;
    }
    // An answer that was overtaken by a later one tells nothing new.
    if (askedAt < this.askedAt || (!isForNumber && askedAt - this.askedAt < RENEW_MS)) return;
    const isChanged = version !== this.version;
    if (isChanged) this.keepConfirmations();
    this.version = version;
    this.askedAt = askedAt;
    if (isChanged) this.onChanged();
  }

  /** Notes of all keys until when they were known to be valid, because the number no longer says so. */
  private keepConfirmations(): void {
    for (const known of this.known.values()) {
      if (this.isCurrent(known)) known.confirmedAt = Math.max(known.confirmedAt, this.askedAt);
    }
  }
}

/** Whom a stored key belongs to. */
export function identityOfKey({
  id,
  name,
  operator,
  tenant,
  scopes,
  queues,
  tasks,
  expiresAt,
}: KeyRow): KeyIdentity {
  const limits = queues === null && tasks === null ? {} : { limits: { queues, tasks } };
  const owner = tenant === null ? {} : { tenant };
  return { operator, name, ...owner, key: { id, scopes, expiresAt, ...limits } };
}

function unconfirmed(): PunctualError {
  return new PunctualError('DATABASE_UNAVAILABLE', 'The key cannot be checked at the moment; try again.', {
    retryAfter: 1,
  });
}

/** Waits for work, but not long: a database that hangs must not delay callers whose key is known. */
async function soon(work: Promise<void>): Promise<void> {
  const done = work.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FRESH_MS);
  });
  await Promise.race([done, patience]);
  clearTimeout(timer);
}

/** What a key is remembered by. */
export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64');
}
