import type { Clock } from '../core/clock.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import {
  verifyAttemptToken,
  verifyCallerToken,
  verifyNodeToken,
  verifyReceiverToken,
  verifySessionToken,
} from '../core/tokens.js';
import { useKeys } from '../store/api-keys.js';
import type { Queryable } from '../store/database.js';
import type { AttemptCredential, Caller, KeyIdentity } from './caller.js';
import { digestOf, KnownKey, KnownKeys } from './known-keys.js';

const HOUR_MS = 3_600_000;
/** How long uses of keys are gathered before they are written. */
const GATHER_USES_MS = 5_000;
/** Keys whose use one statement records. */
const USES_AT_ONCE = 1_000;
/** How often it is looked at whether the keys of open polls have expired. */
const WATCH_MS = 1_000;
/**
 * How old the number of changes may be for those who only wait. Workers that wait send heartbeats, for which it is read
 * anyway, and a node that revokes a key tells the others; this is for when that does not arrive, or when somebody revokes a
 * key in the database.
 */
const WAITING_FRESH_MS = 3_000;

interface AuthenticationParts {
  /** For look-ups of keys, which must not wait behind any traffic: workers would be taken for dead. */
  readonly keys: Queryable;
  /** By which nodes sign tokens. */
  readonly secret: Buffer;
  readonly clock: Clock;
  readonly log: Pick<Log, 'debug'>;
}

/** Called when the key of an open poll is not valid any more, with the error for its client. */
type OnInvalid = (error: PunctualError) => void;

/** Who a bearer credential belongs to. */
export class Authentication {
  private readonly known: KnownKeys;
  private readonly localDigest: string;
  /** The keys behind identities that were given out: whoever waits with one of them is told when it ends. */
  private readonly keyOf = new WeakMap<object, KnownKey>();
  private readonly watched = new Map<KnownKey, Set<OnInvalid>>();
  private watching: NodeJS.Timeout | undefined;
  /** When all keys of open polls were last looked at because a node said so, and the next such look if it has to wait. */
  private lookedAgainAt = Number.NEGATIVE_INFINITY;
  private lookingAgain: NodeJS.Timeout | undefined;
  private uses = new Set<string>();
  private writing: NodeJS.Timeout | undefined;

  constructor(
    private readonly parts: AuthenticationParts,
    localKey: string,
  ) {
    this.known = new KnownKeys(parts.keys, parts.secret, () => void this.look());
    this.localDigest = digestOf(localKey);
  }

  /** Stops looking at keys, and records the uses that are not recorded yet. */
  async close(): Promise<void> {
    clearTimeout(this.watching);
    clearTimeout(this.lookingAgain);
    this.watched.clear();
    if (this.writing === undefined) return;
    clearTimeout(this.writing);
    await this.writeUses();
  }

  /** Verifies a token that a node signed: for one attempt, for itself, or for a call on behalf of a client. */
  private authenticateToken(token: string): KeyIdentity | AttemptCredential | null {
    const { secret, clock } = this.parts;
    const now = clock.now();
    const attempt = verifyAttemptToken(secret, token, now);
    if (attempt) return attempt;
    const receiver = verifyReceiverToken(secret, token, now);
    if (receiver) return { ...receiver, isReceiver: true };
    const caller = verifyCallerToken(secret, token, now) as KeyIdentity | null;
    // The node that signed it has looked at the key less than a second ago, and ends the call when the key ends.
    if (caller) return isExpired(caller, now) ? null : caller;
    const node = verifyNodeToken(secret, token, now);
    return node && { operator: false, name: node.nodeId, node: true };
  }

  /** The owner of a credential; null when it is not valid. */
  async authenticate(bearer: string): Promise<KeyIdentity | AttemptCredential | null> {
    if (bearer.startsWith('ey')) return this.authenticateToken(bearer);
    if (!bearer.startsWith('pk_') || bearer.length > 200) return null;
    const digest = digestOf(bearer);
    if (digest === this.localDigest) return { operator: true, name: 'embedded' };
    return this.ownerOf(await this.known.find(digest, bearer));
  }

  /** The owner of the key that a session is about; null when the session or the key is not valid any more. */
  async authenticateSession(session: string): Promise<KeyIdentity | null> {
    const { secret, clock } = this.parts;
    // Apart from the digests of keys: a key is no session.
    const known = await this.known.lookUp(digestOf(`session ${session}`), () => {
      const said = verifySessionToken(secret, session, clock.now());
      return said && new KnownKey(said.hash, said.endsAt);
    });
    return this.ownerOf(known);
  }

  private ownerOf(known: KnownKey | null): KeyIdentity | null {
    const now = this.parts.clock.now();
    const row = known?.validAt(now);
    if (!known || !row) return null;
    this.noteUse(known, row.id, now);
    const identity = known.identity(row);
    if (!this.keyOf.has(identity.key!)) this.keyOf.set(identity.key!, known);
    return identity;
  }

  /**
   * Calls back when the key of a waiting caller is not valid any more; answers with a function that ends the watch. Only a
   * key that was given to this node is watched: what another node has forwarded ends with the call of that node.
   */
  watch(caller: Caller, onInvalid: OnInvalid): () => void {
    const known = caller.key && this.keyOf.get(caller.key);
    if (!known) return () => undefined;
    const listeners = this.watched.get(known) ?? new Set();
    listeners.add(onInvalid);
    this.watched.set(known, listeners);
    this.watching ??= setTimeout(() => void this.look(), WATCH_MS).unref();
    return () => {
      listeners.delete(onInvalid);
      if (listeners.size === 0 && this.watched.get(known) === listeners) this.watched.delete(known);
    };
  }

  /**
   * Looks at the keys of all open polls, because some keys were changed: at once, but once a second at most, however many are
   * changed.
   */
  lookAgain(): void {
    if (this.watched.size === 0 || this.lookingAgain !== undefined) return;
    const waitMs = this.lookedAgainAt + WATCH_MS - performance.now();
    if (waitMs > 0) {
      this.lookingAgain = setTimeout(() => {
        this.lookingAgain = undefined;
        this.lookAgain();
      }, waitMs).unref();
      return;
    }
    this.lookedAgainAt = performance.now();
    this.known.refresh().then(
      () => this.look(),
      // The usual look comes soon.
      () => this.look(),
    );
  }

  /**
   * Whether the key of a caller is certainly valid. When some key has changed and this one has not been read again yet, the answer
   * comes when it was.
   */
  isValid({ key }: Caller): boolean | Promise<boolean> {
    if (!key) return true;
    const known = this.keyOf.get(key);
    const now = this.parts.clock.now();
    if (!known) return key.expiresAt === null || key.expiresAt > now;
    if (!known.validAt(now)) return false;
    return this.known.isCurrent(known) || this.isStillValid(known);
  }

  /** False if that cannot be found out soon. */
  private async isStillValid(known: KnownKey): Promise<boolean> {
    // A read that was under way may have been sent before the change.
    for (let reads = 0; reads < 2 && !this.known.isCurrent(known); reads += 1)
      await this.known.confirm(known).catch(() => undefined);
    return this.known.isCurrent(known) && !!known.validAt(this.parts.clock.now());
  }

  /** Looks at the keys of all open polls, in one statement if they have to be read; nothing is read while there are none. */
  private async look(): Promise<void> {
    await Promise.all(
      Array.from(this.watched, async ([known, listeners]) => {
        const error = await this.known.confirm(known, WAITING_FRESH_MS).then(
          () => (known.validAt(this.parts.clock.now()) ? null : invalidKey()),
          (thrown: unknown) => (thrown instanceof PunctualError ? thrown : unavailable(thrown)),
        );
        if (error) for (const tell of [...listeners]) tell(error);
      }),
    );
    clearTimeout(this.watching);
    this.watching = undefined;
    if (this.watched.size > 0) this.watching = setTimeout(() => void this.look(), WATCH_MS).unref();
  }

  /** Notes the use of a key, once an hour; it is written later, with others. */
  private noteUse(known: KnownKey, id: string, now: number): void {
    const hour = Math.floor(now / HOUR_MS);
    if (known.usedHour === hour) return;
    known.usedHour = hour;
    if ((known.row?.lastUsedAt ?? 0) >= hour * HOUR_MS) return;
    this.uses.add(id);
    this.writing ??= setTimeout(() => void this.writeUses(), GATHER_USES_MS).unref();
  }

  private async writeUses(): Promise<void> {
    this.writing = undefined;
    const ids = [...this.uses];
    this.uses = new Set();
    const hour = Math.floor(this.parts.clock.now() / HOUR_MS) * HOUR_MS;
    try {
      for (let from = 0; from < ids.length; from += USES_AT_ONCE)
        await useKeys(this.parts.keys, ids.slice(from, from + USES_AT_ONCE), hour);
    } catch (error) {
      // The next hour is written all the same.
      this.parts.log.debug({ error: messageOf(error) }, 'uses of keys could not be recorded');
    }
  }
}

/** The error for a caller whose key is not valid, or not any more. */
export function invalidKey(): PunctualError {
  return new PunctualError('UNAUTHENTICATED', 'The key is not known.');
}

function unavailable(cause: unknown): PunctualError {
  const detail = 'The key cannot be checked at the moment; try again.';
  return new PunctualError('DATABASE_UNAVAILABLE', detail, { retryAfter: 1, cause });
}

function isExpired({ key }: KeyIdentity, now: number): boolean {
  return key !== undefined && key.expiresAt !== null && key.expiresAt <= now;
}
