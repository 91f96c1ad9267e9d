/** Thrown by what only the leader can do, on a node that knows who leads. The request is moved on to it. */
export class LeaderElsewhere extends Error {
  constructor(readonly url: string) {
    super(`the leader is at ${url}`);
    this.name = 'LeaderElsewhere';
  }
}
