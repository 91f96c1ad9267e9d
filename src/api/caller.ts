/** The caller of a route; its tenant comes from the credential alone. */
export interface Caller {
  readonly tenant: string;
  /** Recorded as `createdBy`; the name of the key. */
  readonly actor: string;
  readonly operator: boolean;
}

/** What an attempt's token allows: to report about this one job. */
export interface AttemptCredential {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
}

/** The owner of a key or of another node's token. */
export interface KeyIdentity {
  readonly operator: boolean;
  readonly name: string;
  /** Whether the caller is another node of the cluster. */
  readonly node?: boolean;
}

/** The credential that a route requires. */
export type Scope =
  /** Nothing: anyone may call it. */
  | 'public'
  /** A key that may read. */
  | 'read'
  /** A key that may submit, cancel and change jobs. */
  | 'submit'
  /** A key of a worker. */
  | 'work'
  /** A key that may change queues and schedules. */
  | 'admin'
  /** A key that may act for all tenants. */
  | 'operator'
  /** The token of an attempt of the job in the path, or a key of a worker. */
  | 'attempt'
  /** The token of another node. */
  | 'node';

/**
 * Null if a credential satisfies the scope of a route, else why it does not. Access is decided here and nowhere else.
 * Every key is an operator's so far, and so satisfies every scope of a key.
 */
export function refusalOf(
  credential: KeyIdentity | AttemptCredential,
  scope: Scope,
  jobId: string | undefined,
): string | null {
  if (scope === 'public') return null;
  if (scope === 'node') {
    return 'node' in credential && credential.node ? null : 'Only nodes of the cluster may call this.';
  }
  if ('jobId' in credential) {
    const isItsOwn = scope === 'attempt' && credential.jobId === jobId;
    return isItsOwn ? null : 'The token of an attempt can report about its own job only.';
  }
  // A key that is not an operator's must name its tenant; a guess could give access to another tenant.
  return credential.operator ? null : 'The key belongs to no tenant.';
}
