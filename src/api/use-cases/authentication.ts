import { createHash } from 'node:crypto';
import { verifyAttemptToken } from '../../core/attempt-token.js';
import { verifyNodeToken } from '../../core/node-token.js';
import { findKeyByText, isGenuineKey } from '../../store/operator-key.js';
import type { NodeContext } from '../context.js';
import type { AttemptCredential } from '../use-cases.js';

/** How long a look-up is remembered: a key that is taken back stops working within this time. */
const REMEMBER_MS = 10_000;
const MAX_REMEMBERED = 10_000;

interface Remembered {
  readonly identity: Promise<Identity | null>;
  readonly until: number;
}

interface Identity {
  readonly operator: boolean;
  readonly name: string;
  /** Whether the caller is another node of the cluster. */
  readonly node?: boolean;
}

/** Who a bearer credential belongs to. */
export class Authentication {
  private readonly remembered = new Map<string, Remembered>();

  private readonly localDigest: string;

  constructor(
    private readonly node: NodeContext,
    localKey: string,
  ) {
    this.localDigest = digestOf(localKey);
  }

  /** A token that a node signed: for one attempt, or for another node that calls on somebody's behalf. */
  private authenticateToken(token: string): Identity | AttemptCredential | null {
    const { secret, clock } = this.node;
    const node = verifyNodeToken(secret, token, clock.now());
    if (node) return { operator: true, name: node.actor, node: true };
    return verifyAttemptToken(secret, token, clock.now());
  }

  async authenticate(bearer: string): Promise<Identity | AttemptCredential | null> {
    if (bearer.startsWith('ey')) return this.authenticateToken(bearer);
    if (!bearer.startsWith('pk_') || bearer.length > 200) return null;
    // Remembered by digest, so that a dump of memory shows no keys.
    const digest = digestOf(bearer);
    if (digest === this.localDigest) return { operator: true, name: 'embedded' };
    const known = this.remembered.get(digest);
    if (known && known.until > performance.now()) return known.identity;
    if (!isGenuineKey(this.node.secret, bearer)) return null;
    return this.lookUp(digest, bearer);
  }

  /** Asks the database once, however many requests come with the key meanwhile; that it is unknown is remembered too. */
  private lookUp(digest: string, key: string): Promise<Identity | null> {
    const { keys, secret } = this.node;
    const identity = findKeyByText(keys, secret, key).then(
      (row) => row && { operator: row.operator, name: row.name },
    );
    if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
    this.remembered.set(digest, { identity, until: performance.now() + REMEMBER_MS });
    identity.catch(() => this.remembered.delete(digest));
    return identity;
  }
}

function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64');
}
