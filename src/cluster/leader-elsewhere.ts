/** Thrown where only the leader can serve a request, on a node that knows the leader: the request is forwarded to it. */
export class LeaderElsewhere extends Error {
  constructor(readonly url: string) {
    super(`the leader is at ${url}`);
    this.name = 'LeaderElsewhere';
  }
}
