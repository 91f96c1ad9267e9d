/** A mutex with a queue: pieces of work run one at a time, in the order in which they came. */
export class SerialQueue {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.last.then(work);
    this.last = mine.catch(() => undefined);
    return mine;
  }
}

/** A mutex for each of many names, of which only those in use take up memory. */
export class SerialQueues {
  private readonly queues = new Map<string, { readonly queue: SerialQueue; users: number }>();

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const used = this.queues.get(name) ?? { queue: new SerialQueue(), users: 0 };
    this.queues.set(name, used);
    used.users += 1;
    try {
      return await used.queue.run(work);
    } finally {
      used.users -= 1;
      if (used.users === 0) this.queues.delete(name);
    }
  }

  /** How many names are in use. */
  get size(): number {
    return this.queues.size;
  }
}
