import type { Argument, Command, Option } from 'commander';

/** What a value on the command line names: known by the option or the argument that takes it. */
export type ValueKind =
  | 'job'
  | 'worker'
  | 'key'
  | 'secret'
  | 'signing-secret'
  | 'workflow'
  | 'batch'
  | 'artifact'
  | 'queue'
  | 'schedule'
  | 'task'
  | 'tenant';

const BY_OPTION: Readonly<Record<string, ValueKind>> = {
  job: 'job',
  queue: 'queue',
  queues: 'queue',
  schedule: 'schedule',
  task: 'task',
  tenant: 'tenant',
  worker: 'worker',
};

/** What the value of an option names; null if it is something else. */
export function kindOfOption(option: Option): ValueKind | null {
  return BY_OPTION[option.attributeName()] ?? null;
}

const BY_NOUN: Readonly<Record<string, { readonly argument: string; readonly kind: ValueKind }>> = {
  job: { argument: 'id', kind: 'job' },
  worker: { argument: 'id', kind: 'worker' },
  key: { argument: 'id', kind: 'key' },
  secret: { argument: 'name', kind: 'secret' },
  'signing-secret': { argument: 'id', kind: 'signing-secret' },
  workflow: { argument: 'id', kind: 'workflow' },
  batch: { argument: 'id', kind: 'batch' },
  artifact: { argument: 'artifact', kind: 'artifact' },
  tenant: { argument: 'id', kind: 'tenant' },
  queue: { argument: 'name', kind: 'queue' },
  schedule: { argument: 'name', kind: 'schedule' },
  task: { argument: 'name', kind: 'task' },
};

/** What an argument of a command names; null if it is something else, or the name of something new. */
export function kindOfArgument(command: Command, argument: Argument): ValueKind | null {
  const noun = BY_NOUN[command.parent?.name() ?? ''];
  if (noun === undefined || command.name() === 'create') return null;
  return argument.name().replace(/s$/, '') === noun.argument ? noun.kind : null;
}
