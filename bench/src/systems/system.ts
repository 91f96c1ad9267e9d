import type { Graph } from '../graphs.js';

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

/** A system that takes graphs of jobs. */
export interface GraphSystem extends System {
  /**
   * Submits a graph as a whole; its steps have the numbers from `first` on. A program does so as it submits jobs, unless it is
   * to speak HTTP.
   */
  submitGraph(graph: Graph, first: number, way: 'program' | 'http'): Promise<void>;
}

export interface Surroundings {
  /** A database of the slice's own on the shared server; for BullMQ a Redis. */
  readonly url: string;
  /** A folder for files of the slice. */
  readonly folder: string;
  /** Whether handlers should be quick to start or many. */
  readonly purpose: 'throughput' | 'latency';
  /** Whether the jobs are of a tenant with quotas; for Punctual only. */
  readonly quotas: boolean;
  /** Called by the handler of each job, with its number. */
  readonly onStart: (number: number) => void;
}
