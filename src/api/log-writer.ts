import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import { isMissingPartition, type Pool } from '../store/database.js';
import { addLogLines } from '../store/job-logs.js';
import { makePartition } from '../store/partitions.js';

interface LogWriterOptions {
  readonly hot: Pool;
  readonly pool: Pool;
  readonly config: Pick<Config, 'maxLog'>;
  readonly clock: Clock;
}

/** The attempt that writes. */
interface Writer {
  readonly tenant: string;
  readonly job: string;
  readonly fence: number;
}

/**
 * Appends to the logs of jobs. Writes to one log run one at a time, so that they do not hold a connection each.
 */
export class LogWriter {
  /** The last write to each log that is in progress. */
  private readonly writing = new Map<string, Promise<unknown>>();

  constructor(private readonly options: LogWriterOptions) {}

  /** Appends lines, each as JSON text; answers false when the attempt no longer runs. */
  async append(writer: Writer, lines: readonly string[]): Promise<boolean> {
    const { job } = writer;
    const write = () => this.write(writer, lines);
    const mine = (this.writing.get(job) ?? Promise.resolve()).then(write, write);
    this.writing.set(job, mine);
    try {
      return await mine;
    } finally {
      if (this.writing.get(job) === mine) this.writing.delete(job);
    }
  }

  private async write(writer: Writer, lines: readonly string[]): Promise<boolean> {
    const { hot, pool, config, clock } = this.options;
    const add = () => addLogLines(hot, writer, lines, config.maxLog, clock.now());
    try {
      return await add();
    } catch (error) {
      if (!isMissingPartition(error)) throw error;
      await makePartition(pool, 'job_logs', clock.now());
      return add();
    }
  }
}
