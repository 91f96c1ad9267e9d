/** How every event of a job begins to tell its type in a stream of server-sent events. */
const TYPE_OF_JOB_EVENT = '\nevent: job.';

/** Counts the events of jobs in a stream that comes in pieces. */
export class EventCount {
  events = 0;
  #tail = '';

  take(piece: Buffer): void {
    // What is looked for may begin in one piece and end in the next. The tail is too short to hold all of it.
    const text = this.#tail + piece.toString('latin1');
    let at = text.indexOf(TYPE_OF_JOB_EVENT);
    while (at !== -1) {
      this.events += 1;
      at = text.indexOf(TYPE_OF_JOB_EVENT, at + TYPE_OF_JOB_EVENT.length);
    }
    this.#tail = text.slice(1 - TYPE_OF_JOB_EVENT.length);
  }
}
