/** A leader as this node knows it. */
export interface KnownLeader {
  readonly url: string;
  /** Aborts when this node learns that the leader's term is over: nobody may wait for its answers any more. */
  readonly over: AbortSignal;
}

/** Thrown by what only a shard's leader can do, on a node that knows the leader. The request is forwarded to it. */
export class LeaderElsewhere extends Error {
  constructor(
    readonly shard: number,
    readonly url: string,
  ) {
    super(`the leader of shard ${shard} is at ${url}`);
    this.name = 'LeaderElsewhere';
  }
}
