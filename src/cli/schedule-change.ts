import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { ScheduleView } from '../core/wire.js';
import { callsServer } from './call.js';
import type { Cli } from './cli.js';
import { several } from './option-values.js';
import { addDefinitionOptions, type DefinitionOptions, definitionOf } from './schedule-options.js';
import { scheduleDetails, schedulePath } from './schedule-text.js';

interface ChangeOptions extends DefinitionOptions {
  readonly unset?: readonly string[];
}

/** `punctual schedule change`: some of what a schedule says, from its next occurrence on. */
export function addChangeCommand(schedule: Command, cli: Cli): void {
  const command = schedule
    .command('change')
    .description('change a schedule from its next occurrence on; what is not named stays as it is')
    .argument('<name>', 'the name of the schedule');
  addDefinitionOptions(command).option(
    '--unset <field>',
    'take a field of the API, such as endAt, back to its default; repeatable',
    several,
  );
  callsServer<ChangeOptions>(cli, command, async ({ api, output, options, args }) => {
    const unset = Object.fromEntries((options.unset ?? []).map((field) => [field, null]));
    const body = { ...(await definitionOf(cli, options)), ...unset };
    if (Object.keys(body).length === 0)
      throw new PunctualError('USAGE', 'Say what to change, such as --cron, --payload or --unset endAt.');
    const path = schedulePath(args[0]!);
    const changed = await api.request<ScheduleView>('PATCH', path, { body, signal: cli.interrupted });
    output.document(changed, () => scheduleDetails(output, changed));
  });
}
