import { Command, type Help } from 'commander';
import { painterFor } from '../core/paint.js';
import { VERSION } from '../core/version.js';
import { addArtifactCommands } from './artifact-commands.js';
import { addAuditCommands } from './audit-commands.js';
import { addBatchCommands } from './batch-commands.js';
import { exitCodeOf, globalsOf, refuseUnusedGlobals } from './call.js';
import type { Cli } from './cli.js';
import { addClusterCommands } from './cluster-commands.js';
import { addCompletionCommand } from './completion.js';
import { printValues, VALUES_COMMAND } from './completion-values.js';
import { addDatabaseCommands } from './db-commands.js';
import { addDoctorCommand } from './doctor.js';
import { EXIT_INTERRUPTED, failureDocument, failureOf, renderFailure } from './failure.js';
import { addJobCommands } from './job-commands.js';
import { addKeyCommands } from './key-commands.js';
import { addLoginCommands } from './login-commands.js';
import { addOpenCommand } from './open-command.js';
import { addOriginCommands } from './origin-commands.js';
import { addQueueCommands } from './queue-commands.js';
import { addScheduleCommands } from './schedule-commands.js';
import { addSecretCommands } from './secret-commands.js';
import { addServerCommand } from './server-command.js';
import { addSigningSecretCommands } from './signing-secret-commands.js';
import { addTaskCommands } from './task-commands.js';
import { addTenantCommands } from './tenant-commands.js';
import { addUpCommand } from './up-command.js';
import { addWorkerCommands } from './worker-commands.js';
import { addWorkflowCommands } from './workflow-commands.js';

/** Shows the global options in the help of the commands that use them. */
const HELP: Partial<Help> = {
  showGlobalOptions: true,
  visibleGlobalOptions(command) {
    let root = command;
    while (root.parent) root = root.parent;
    const used: readonly string[] = globalsOf(command);
    return root.options.filter((option) => used.includes(option.attributeName()));
  },
};

/** The whole command line. Behind a command, `--version` belongs to that. */
export function buildProgram(cli: Cli, takesVersion = true): Command {
  const program = new Command('punctual');
  program.description('Punctual starts work on time, every time: a distributed task scheduler.');
  if (takesVersion) program.version(VERSION, '-V, --version', 'print the version');
  program
    .option('--url <url>', 'address of a node, or several separated by commas')
    .option('--api-key <key>', 'key for the API')
    .option('--tenant <id>', 'the tenant to act for, with an operator key')
    .option('--profile <name>', 'use the address and key that `punctual login` kept under this name')
    .option('--json', 'print JSON for programs')
    .helpOption('-h, --help', 'show how the command is used')
    .configureHelp(HELP)
    .configureOutput({
      writeOut: (text) => void cli.stdout.write(text),
      writeErr: (text) => void cli.stderr.write(text),
      // Commander's errors are printed at the end of the run, like all others.
      outputError: () => undefined,
    })
    .exitOverride()
    .hook('preAction', (root, command) => refuseUnusedGlobals(root, command));
  addUpCommand(program, cli);
  addOpenCommand(program, cli);
  addServerCommand(program, cli);
  addWorkerCommands(program, cli);
  addTaskCommands(program, cli);
  addJobCommands(program, cli);
  addScheduleCommands(program, cli);
  addWorkflowCommands(program, cli);
  addBatchCommands(program, cli);
  addArtifactCommands(program, cli);
  addQueueCommands(program, cli);
  addOriginCommands(program, cli);
  addClusterCommands(program, cli);
  addTenantCommands(program, cli);
  addKeyCommands(program, cli);
  addSecretCommands(program, cli);
  addSigningSecretCommands(program, cli);
  addAuditCommands(program, cli);
  addLoginCommands(program, cli);
  addDatabaseCommands(program, cli);
  addDoctorCommand(program, cli);
  addCompletionCommand(program, cli);
  return program;
}

/** Runs one command line and returns the exit code. Errors are printed on stderr. */
export async function runCli(args: readonly string[], cli: Cli): Promise<number> {
  if (args[0] === VALUES_COMMAND) {
    await printValues(args.slice(1), cli);
    return 0;
  }
  try {
    const takesVersion = args[0]?.startsWith('-') ?? true;
    await buildProgram(cli, takesVersion).parseAsync([...args], { from: 'user' });
    return exitCodeOf(cli);
  } catch (thrown) {
    // The reader has closed the pipe, as in `punctual job list | head`: that is no error.
    if (cli.readerGone.aborted) return 0;
    if (cli.interrupted.aborted) return EXIT_INTERRUPTED;
    const failure = failureOf(thrown);
    if (failure === null) return 0;
    cli.supervisor?.failed(failure.code, failure.detail);
    const text = args.includes('--json')
      ? failureDocument(failure)
      : renderFailure(failure, painterFor(cli.stderr, cli.environment));
    cli.stderr.write(text);
    return failure.exitCode;
  }
}
