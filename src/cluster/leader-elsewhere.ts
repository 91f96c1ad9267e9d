/** Thrown by what only a leader can do, on a node that knows the leader. The request is forwarded to it. */
export class LeaderElsewhere extends Error {
  constructor(readonly url: string) {
    super(`the leader is at ${url}`);
    this.name = 'LeaderElsewhere';
  }
}
