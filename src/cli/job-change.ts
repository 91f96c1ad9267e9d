import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { printable } from '../core/paint.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { stateText } from './job-follow.js';
import { readPayload } from './json-input.js';
import { moment, wholeNumber } from './option-values.js';

interface ChangeOptions {
  readonly runAt?: string;
  readonly priority?: number;
  readonly payload?: string;
}

/** `punctual job change`: when, how urgently and with what a job runs that has not started. */
export function addChangeCommand(job: Command, cli: Cli): void {
  const command = job
    .command('change')
    .description('change when, how urgently or with what a job runs that has not started')
    .argument('<id>', 'the id of the job')
    .option('--run-at <moment>', 'start at this moment, such as 2026-12-24T18:00:00Z', moment)
    .option('--priority <n>', 'from 1 to 9, 9 first', wholeNumber(1, 9))
    .option('--payload <json>', 'its input: JSON, @file, or - for stdin');
  callsServer<ChangeOptions>(cli, command, async ({ api, output, options, args }) => {
    const { runAt, priority } = options;
    const payload = await readPayload(cli, options.payload);
    const body = {
      ...(runAt !== undefined && { runAt }),
      ...(priority !== undefined && { priority }),
      ...(payload !== undefined && { payload }),
    };
    if (Object.keys(body).length === 0)
      throw new PunctualError('USAGE', 'Give what to change: --run-at, --priority or --payload.');
    const path = `/v1/jobs/${encodeURIComponent(args[0]!)}`;
    const changed = await api.request<Job>('PATCH', path, { body, signal: cli.interrupted });
    output.document(changed, () => `${changed.id}  ${printable(stateText(changed))}\n`);
  });
}
