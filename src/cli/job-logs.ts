import type { Command } from 'commander';
import type { ApiClient } from '../client/api-client.js';
import { isEnded } from '../core/job.js';
import type { LogLevel, Page, StoredLogLine } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { readJob } from './job-follow.js';
import type { Output } from './output.js';
import { printable, type Style } from './paint.js';

const PAGE = 1_000;
const FOLLOW_STEP_MS = 1_000;

const LEVEL_STYLES: Readonly<Record<LogLevel, Style>> = {
  debug: 'dim',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
};

/** `punctual job logs ID`: what the attempts of a job wrote; one JSON document per line with `--json`. */
export function addLogsCommand(job: Command, cli: Cli): void {
  const command = job
    .command('logs')
    .description('show what a job wrote')
    .argument('<id>', 'the id of the job')
    .option('-f, --follow', 'go on until the job has ended');
  callsServer<{ follow?: boolean }>(cli, command, async ({ api, output, options, args }) => {
    const id = args[0]!;
    const signal = AbortSignal.any([cli.interrupted, cli.readerGone]);
    const reader = new LogReader(api, id, signal);
    await reader.printNew(output);
    if (!options.follow) return;
    // The log is read once more after the end has been seen, because its last lines may come with it.
    for (let ended = false; !ended; ) {
      ended = isEnded((await readJob(api, id, signal, FOLLOW_STEP_MS)).state);
      await reader.printNew(output);
    }
  });
}

/** Reads a log that grows: keeps the last page's cursor and how many of its lines have been printed. */
class LogReader {
  readonly #api: ApiClient;
  readonly #id: string;
  readonly #signal: AbortSignal;
  #after: string | null = null;
  #printed = 0;

  constructor(api: ApiClient, id: string, signal: AbortSignal) {
    this.#api = api;
    this.#id = id;
    this.#signal = signal;
  }

  /** Prints every line that has not been printed yet. */
  async printNew(output: Output): Promise<void> {
    for (;;) {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (this.#after !== null) query.set('after', this.#after);
      const path = `/v1/jobs/${encodeURIComponent(this.#id)}/logs?${query}`;
      const page = await this.#api.request<Page<StoredLogLine>>('GET', path, { signal: this.#signal });
      for (const line of page.data.slice(this.#printed)) printLine(output, line);
      if (page.next === null) {
        this.#printed = page.data.length;
        return;
      }
      this.#after = page.next;
      this.#printed = 0;
    }
  }
}

function printLine(output: Output, line: StoredLogLine): void {
  output.document(line, () => {
    const level = output.paint(LEVEL_STYLES[line.level], line.level.padEnd(5));
    return `${output.paint('dim', line.at)} ${level} ${printable(line.message)}\n`;
  });
}
