import type { KeyScope } from './access.js';

/** Who is signed in, and for how long. */
export interface Session {
  /** A short name of the cluster, which is part of the name of the cookie. */
  readonly cluster: string;
  /** The node that answered. */
  readonly node: string;
  readonly version: string;
  /** Null for an operator. */
  readonly tenant: string | null;
  readonly operator: boolean;
  /** Empty for an operator that may do everything. */
  readonly scopes: readonly KeyScope[];
  /** The queues that the key may touch; null for all. */
  readonly queues: readonly string[] | null;
  /** The tasks that the key may touch; null for all. */
  readonly tasks: readonly string[] | null;
  /** The name of the key. */
  readonly name: string;
  /** Null for programs in the process of a node. */
  readonly keyId: string | null;
  /** When the session ends, or the key if there is no session; null for never. */
  readonly expiresAt: string | null;
}

/** A code that signs in once. */
export interface SignInCode {
  readonly code: string;
  readonly expiresAt: string;
}
