import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import { verifyAttemptToken, verifyNodeToken } from '../core/tokens.js';
import type { Queryable } from '../store/database.js';
import { findKeys, hashKey, isGenuineKey, type KeyRow } from '../store/operator-key.js';
import type { AttemptCredential, KeyIdentity } from './caller.js';

/** How old a cached key may be: a revoked key is refused after this time. */
const FRESH_MS = 1_000;
/** The age from which on a cached key is read again in the background. */
const RENEW_MS = 750;
/** How long cached keys are accepted while the database cannot be reached. */
const WITHOUT_DATABASE_MS = 30_000;
const MAX_REMEMBERED = 10_000;

/** A cached key. */
interface Remembered {
  readonly hash: Buffer;
  identity: Promise<KeyIdentity | null>;
  /** When the statement that found its owner was sent. */
  askedAt: number;
  /** Whether it was used since it was last read. */
  used: boolean;
}

interface AuthenticationParts {
  /** For look-ups of keys, which must not wait behind any traffic: workers would be taken for dead. */
  readonly keys: Queryable;
  /** By which nodes sign tokens. */
  readonly secret: Buffer;
  readonly clock: Clock;
}

/** Who a bearer credential belongs to. */
export class Authentication {
  private readonly remembered = new Map<string, Remembered>();
  private renewing: Promise<void> | undefined;
  private readonly localDigest: string;

  constructor(
    private readonly parts: AuthenticationParts,
    localKey: string,
  ) {
    this.localDigest = digestOf(localKey);
  }

  /** Verifies a token that a node signed: for one attempt, or for a call of another node on behalf of a client. */
  private authenticateToken(token: string): KeyIdentity | AttemptCredential | null {
    const { secret, clock } = this.parts;
    const node = verifyNodeToken(secret, token, clock.now());
    if (node) return { operator: true, name: node.actor, node: true };
    return verifyAttemptToken(secret, token, clock.now());
  }

  /** The owner of a credential; null when it is not valid. */
  async authenticate(bearer: string): Promise<KeyIdentity | AttemptCredential | null> {
    if (bearer.startsWith('ey')) return this.authenticateToken(bearer);
    if (!bearer.startsWith('pk_') || bearer.length > 200) return null;
    // Cached by digest, so that a dump of memory contains no keys.
    const digest = digestOf(bearer);
    if (digest === this.localDigest) return { operator: true, name: 'embedded' };
    const known = this.remembered.get(digest);
    if (known) return this.recall(known);
    if (!isGenuineKey(this.parts.secret, bearer)) return null;
    return this.lookUp(digest, bearer);
  }

  /**
   * Reads the key from the database, once for all requests that come with it meanwhile; an unknown key is cached too.
   */
  private lookUp(digest: string, key: string): Promise<KeyIdentity | null> {
    const hash = hashKey(this.parts.secret, key);
    const identity = findKeys(this.parts.keys, [hash]).then(([row]) => identityOf(row));
    if (this.remembered.size >= MAX_REMEMBERED) {
      for (const oldest of this.remembered.keys()) {
        this.remembered.delete(oldest);
        break;
      }
    }
    this.remembered.set(digest, { hash, identity, askedAt: performance.now(), used: false });
    identity.catch(() => this.remembered.delete(digest));
    return identity;
  }

  private async recall(known: Remembered): Promise<KeyIdentity | null> {
    known.used = true;
    const age = performance.now() - known.askedAt;
    if (age > RENEW_MS) {
      const renewed = this.renew(known);
      if (age > WITHOUT_DATABASE_MS) await renewed;
      else if (age > FRESH_MS) await soon(renewed);
      else renewed.catch(() => undefined);
    }
    return known.identity;
  }

  /** Reads all keys in use again, in one statement that concurrent callers share. */
  private async renew(known: Remembered): Promise<void> {
    const { askedAt } = known;
    const isUnderWay = this.renewing !== undefined;
    this.renewing ??= this.readAgain().finally(() => {
      this.renewing = undefined;
    });
    await this.renewing;
    // A statement that was in flight before may not include this key.
    if (isUnderWay && known.askedAt === askedAt) await this.renew(known);
  }

  private async readAgain(): Promise<void> {
    const askedAt = performance.now();
    const used = [...this.remembered.values()].filter((each) => each.used);
    for (const each of used) each.used = false;
    const rows = await findKeys(
      this.parts.keys,
      used.map(({ hash }) => hash),
    );
    const found = new Map(rows.map((row) => [row.hash.toString('base64'), row]));
    for (const each of used) {
      each.identity = Promise.resolve(identityOf(found.get(each.hash.toString('base64'))));
      each.askedAt = askedAt;
    }
  }
}

function identityOf(row: KeyRow | undefined): KeyIdentity | null {
  return row ? { operator: row.operator, name: row.name } : null;
}

/** Waits for work, but not long: a database that hangs must not delay callers whose key is cached. */
async function soon(work: Promise<void>): Promise<void> {
  const done = work.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FRESH_MS);
  });
  await Promise.race([done, patience]);
  clearTimeout(timer);
}

function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64');
}
