import type { Argument, Command, Option } from 'commander';
import { globalsOf } from '../src/cli/call.js';
import { environmentName, SETTINGS, type SettingName } from '../src/core/config.js';
import { formatDuration } from '../src/core/duration.js';
import { ERROR_CODES } from '../src/core/errors.js';

/** Writes the reference page of the command line from the commands themselves. */

const EXIT_CODES: Readonly<Record<number, string>> = {
  0: 'ok',
  1: 'error',
  2: 'the command was not used correctly, or its input is not valid',
  3: 'the job ended unsuccessfully',
  4: 'not allowed',
  5: 'not found',
  6: 'conflict with the current state',
  7: 'unreachable, or not able to answer at the moment',
  124: 'the wait timed out',
  130: 'interrupted',
};

const PREFACE = `# Command line

<!-- Generated from the commands; \`npx vitest run --project unit src/cli/reference -u\` updates it. -->

\`punctual NOUN VERB\`. Data goes to stdout; logs, progress and errors go to stderr, so output can always be piped.
\`--json\` prints one JSON document, or one per line for commands that keep printing. Colours and progress bars
appear on a terminal only, and never when \`NO_COLOR\` is set. Every error says what went wrong and what to do; with
\`--json\` it is a JSON document \`{"error": {"code", "detail", "hint"}}\` on stderr.

Commands that call a node take its address and key from \`--url\` and \`--api-key\`, else from \`PUNCTUAL_URL\` and
\`PUNCTUAL_API_KEY\`, else from the profile in \`PUNCTUAL_PROFILE\`, else from the \`credentials.json\` that \`punctual up\`
writes to \`.punctual\` (or to the folder in \`PUNCTUAL_DATA\`), else from the profile \`default\` of \`punctual login\`.
\`--profile\` comes before all of these but \`--url\` and \`--api-key\`.

Tables fit the terminal: when one is too wide, ids are shortened, then long cells, then the least important columns are
left out. \`--wide\` shows everything; so does a pipe or a file. A shortened id can be used wherever an id is expected: the
first characters, 8 or more, are enough while no other job or worker of the tenant begins with them. \`--json\` is always
whole. \`--watch\` shows a list or an item again when [events](events.md) say that it may have changed, and every ten
seconds; every second where nodes tell no events, or too many. Ctrl-C ends it.
`;

/** The whole page. */
export function cliReference(program: Command): string {
  const sections = leaves(program).map(section);
  return [PREFACE, exitCodes(), globalOptions(program), '## Commands\n', ...sections, settings()].join('\n');
}

function leaves(command: Command): Command[] {
  return command.commands.length > 0 ? command.commands.flatMap(leaves) : [command];
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function section(command: Command): string {
  const args = command.registeredArguments.map((argument) => ` ${argumentText(argument)}`).join('');
  const used = globalsOf(command).map(
    (name) => `\`--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}\``,
  );
  const rows = [
    ...command.registeredArguments.map((argument) => row(argumentText(argument), argument.description)),
    ...command.options.map(optionRow),
  ];
  const table = rows.length > 0 ? `\n| | |\n| --- | --- |\n${rows.join('\n')}\n` : '';
  const globals = used.length > 0 ? `\nTakes the global ${used.join(', ')}.\n` : '';
  const description = command.description();
  const sentence = `${description[0]!.toUpperCase()}${description.slice(1)}.`;
  return `### \`${pathOf(command)}${args}\`\n\n${sentence}\n${table}${globals}`;
}

function globalOptions(program: Command): string {
  const rows = program.options.map(optionRow).join('\n');
  return `## Global options\n\nThey may appear anywhere on the command line.\n\n| | |\n| --- | --- |\n${rows}\n`;
}

function argumentText(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

function optionRow(option: Option): string {
  const choices = option.argChoices ? `: ${option.argChoices.join(' or ')}` : '';
  const fallback = option.defaultValue === undefined ? '' : ` (default: ${option.defaultValue})`;
  return row(option.flags, `${option.description}${choices}${fallback}`);
}

const row = (left: string, right: string): string => `| \`${left}\` | ${right.replace(/\|/g, '\\|')} |`;

function exitCodes(): string {
  const codesOf = (exit: string) =>
    Object.entries(ERROR_CODES)
      .filter(([, error]) => error.exit === Number(exit))
      .map(([code]) => `\`${code}\``)
      .join(', ');
  const rows = Object.entries(EXIT_CODES).map(
    ([exit, meaning]) => `| ${exit} | ${meaning} | ${codesOf(exit)} |`,
  );
  return `## Exit codes\n\n| exit code | meaning | error codes |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
}

function settings(): string {
  const rows = (Object.keys(SETTINGS) as SettingName[]).map((name) => {
    const setting = SETTINGS[name];
    const value = setting.kind === 'duration' ? formatDuration(setting.default) : String(setting.default);
    return `| \`${environmentName(name)}\` | ${value === '' ? '' : `\`${value}\``} | ${setting.description} |`;
  });
  return `## Settings

Flags override environment variables, which override defaults. \`PUNCTUAL_…_FILE\` names a file that contains the value,
which keeps secrets out of the environment. \`--print-config\` on \`up\`, \`server\` and \`worker run\` prints every setting
and where its value came from. They warn of variables that begin with \`PUNCTUAL_\` and are no settings, and name the ones that were
probably meant.

| variable | default | meaning |
| --- | --- | --- |
${rows.join('\n')}
`;
}
