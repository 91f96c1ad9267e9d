import { createHash } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import { verifyAttemptToken, verifyNodeToken } from '../core/tokens.js';
import type { Queryable } from '../store/database.js';
import { findKeys, hashKey, isGenuineKey, type KeyRow } from '../store/operator-key.js';
import type { AttemptCredential, KeyIdentity } from './caller.js';

/** How old knowledge of a key may be: a revoked key is refused after this time. */
const FRESH_MS = 1_000;
/** From this age on a key is read again in the background, while requests go on with what is known. */
const RENEW_MS = 750;
/** How long known keys are served while the database cannot be asked. */
const WITHOUT_DATABASE_MS = 30_000;
const MAX_REMEMBERED = 10_000;

/** What is known of a key that somebody has used. */
interface Remembered {
  readonly hash: Buffer;
  identity: Promise<KeyIdentity | null>;
  /** When the statement was sent that told who it is. */
  askedAt: number;
  /** Whether it was used since. */
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

  /** A token that a node signed: for one attempt, or for another node that calls on somebody's behalf. */
  private authenticateToken(token: string): KeyIdentity | AttemptCredential | null {
    const { secret, clock } = this.parts;
    const node = verifyNodeToken(secret, token, clock.now());
    if (node) return { operator: true, name: node.actor, node: true };
    return verifyAttemptToken(secret, token, clock.now());
  }

  /** Whose credential it is; null when it is none of ours. */
  async authenticate(bearer: string): Promise<KeyIdentity | AttemptCredential | null> {
    if (bearer.startsWith('ey')) return this.authenticateToken(bearer);
    if (!bearer.startsWith('pk_') || bearer.length > 200) return null;
    // Remembered by digest, so that a dump of memory shows no keys.
    const digest = digestOf(bearer);
    if (digest === this.localDigest) return { operator: true, name: 'embedded' };
    const known = this.remembered.get(digest);
    if (known) return this.recall(known);
    if (!isGenuineKey(this.parts.secret, bearer)) return null;
    return this.lookUp(digest, bearer);
  }

  /**
   * Asks the database once, however many requests come with the key meanwhile; that it is unknown is remembered too.
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

  /** Reads all keys again that are in use, in one statement; many who want it at once cause one. */
  private async renew(known: Remembered): Promise<void> {
    const { askedAt } = known;
    const isUnderWay = this.renewing !== undefined;
    this.renewing ??= this.readAgain().finally(() => {
      this.renewing = undefined;
    });
    await this.renewing;
    // What was under way already may have left this key out.
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

/** Waits for work, but not for long: a database that hangs must not hold up callers whose key is known. */
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
