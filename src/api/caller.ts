import type { KeyLimits, KeyScope } from '../core/access.js';

/** The caller of a route; its tenant comes from the credential alone, unless that is an operator's. */
export interface Caller {
  readonly tenant: string;
  /** Recorded as `createdBy`; the name of the key. */
  readonly actor: string;
  readonly operator: boolean;
  /** Whether an operator has named no tenant, and so is shown all of them where that is possible. */
  readonly allTenants?: true;
  /** The key; missing for programs in the process of a node, and for nodes. */
  readonly key?: CallerKey;
  /** When the session ends, if the caller came with one instead of the key itself. */
  readonly sessionEndsAt?: number;
}

/** What is known about the key of a caller. */
export interface CallerKey {
  readonly id: string;
  /** Empty for an operator's key that may do everything. */
  readonly scopes: readonly KeyScope[];
  readonly expiresAt: number | null;
  /** What the key is restricted to; missing if it is not. */
  readonly limits?: KeyLimits;
}

/**
 * What an attempt's token allows: to report about this one job, and to add steps to its workflow. That of the receiver of an
 * http call allows only the former.
 */
export interface AttemptCredential {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
  /** What the key of the attempt's worker is restricted to; missing if it is not. */
  readonly limits?: KeyLimits;
  /** Whether it is the token of the receiver, not the worker's own. */
  readonly isReceiver?: true;
}

/** The owner of a key or of another node's token. */
export interface KeyIdentity {
  readonly operator: boolean;
  readonly name: string;
  /** The tenant of a key that is not an operator's. */
  readonly tenant?: string;
  readonly key?: CallerKey;
  /** When the session ends, if the key was not given itself. */
  readonly sessionEndsAt?: number;
  /** Whether the caller is another node of the cluster. */
  readonly node?: boolean;
}

/** Whom a caller was taken for, for the node that it is passed on to; null for an attempt, whose token says it all. */
export function identityOf(caller: Caller | AttemptCredential): KeyIdentity | null {
  if ('jobId' in caller) return null;
  const { tenant, actor: name, operator, key } = caller;
  return { operator, name, ...(!operator && { tenant }), ...(key && { key }) };
}

/** The credential that a route requires. */
export type Scope =
  /** Nothing: anyone may call it. */
  | 'public'
  /** Any key of a tenant or an operator. */
  | 'key'
  /** A key that may read; one with the scope `admin` may. */
  | 'read'
  /** A key that may submit, cancel and change jobs. */
  | 'submit'
  /** A key of a worker. */
  | 'work'
  /** A key that may change queues, schedules and keys. */
  | 'admin'
  /** A key that may act for all tenants. */
  | 'operator'
  /** The token of an attempt of the job in the path, or a key of a worker. */
  | 'attempt'
  /** The token of an attempt, whose job must be a step of the workflow in the path, or a key of a worker. */
  | 'step'
  /** The token of another node. */
  | 'node';

/** What a request is about, as far as access is decided by it. */
export interface Asked {
  /** The id in the path. */
  readonly id: string | undefined;
  /** The tenant that the request names. */
  readonly tenant: unknown;
}

/**
 * Null if a credential satisfies the scope of a route, else why it does not. Access is decided here and nowhere else. An
 * operator's key satisfies every scope of a key, or `read` alone if it has scopes. Of a tenant's key, each scope allows one
 * kind of routes, except that `admin` includes `read`; it never acts for another tenant.
 */
export function refusalOf(
  credential: KeyIdentity | AttemptCredential,
  scope: Scope,
  { id, tenant }: Asked,
): string | null {
  if (scope === 'public') return null;
  if (scope === 'node') {
    return 'node' in credential && credential.node ? null : 'Only nodes of the cluster may call this.';
  }
  if ('jobId' in credential) {
    const isReceiver = 'isReceiver' in credential && credential.isReceiver;
    const isItsOwn = (scope === 'step' && !isReceiver) || (scope === 'attempt' && credential.jobId === id);
    if (!isItsOwn && isReceiver) return 'The token of a receiver can report about its own attempt only.';
    return isItsOwn
      ? null
      : 'The token of an attempt can report about its own job, and add steps to its workflow, only.';
  }
  const scopes = credential.key?.scopes ?? [];
  if (credential.operator) {
    const isGranted = scopes.length === 0 || scope === 'key' || (scope === 'read' && scopes.includes('read'));
    return isGranted ? null : 'This key of an operator may only read.';
  }
  // A key that is not an operator's must name its tenant; a guess could give access to another tenant.
  if (credential.tenant === undefined) return 'The key belongs to no tenant.';
  if (tenant !== undefined && tenant !== credential.tenant) return 'The key belongs to another tenant.';
  if (scope === 'key') return null;
  if (scope === 'operator') return 'Only a key of an operator may do this.';
  const wanted = scope === 'attempt' || scope === 'step' ? 'work' : scope;
  const isGranted = scopes.includes(wanted) || (wanted === 'read' && scopes.includes('admin'));
  return isGranted ? null : `The key lacks the scope ${wanted}.`;
}
