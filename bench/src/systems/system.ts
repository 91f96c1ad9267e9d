/** What every system under test does for the bench: takes jobs, and calls back when a handler starts. */
export interface System {
  /** The settings it runs with, for people. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Submits the jobs `first` … `first + count - 1`, each with the payload `{"n": number}`, in bulk. */
  submitMany(first: number, count: number): Promise<void>;
  /** Submits one job, as a program that has just one would. */
  submitOne(number: number): Promise<void>;
  /** Waits for what has started to be recorded, and ends the workers. */
  finish(): Promise<void>;
  /** What the system itself says about the jobs, after it has finished: nothing if all is well. */
  check(submitted: number): Promise<readonly string[]>;
  /** Lets go of everything. */
  close(): Promise<void>;
}

export interface Surroundings {
  /** A database of the slice's own on the shared server; for BullMQ a Redis. */
  readonly url: string;
  /** A folder for files of the slice. */
  readonly folder: string;
  /** Whether handlers should be quick to start or many. */
  readonly purpose: 'throughput' | 'latency';
  /** Called by the handler of each job, with its number. */
  readonly onStart: (number: number) => void;
}
