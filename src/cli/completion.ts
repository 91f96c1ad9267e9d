import { Argument, type Command, type Option } from 'commander';
import { assertNever } from '../core/errors.js';
import { globalsOf, runsLocally } from './call.js';
import type { Cli } from './cli.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** A position on the command line, and the words that may follow there. */
interface Position {
  /** The commands before it, separated by blanks; empty at the beginning. */
  readonly path: string;
  readonly words: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly description: string;
}

/** `punctual completion SHELL`: a completion script, generated from the commands. */
export function addCompletionCommand(program: Command, cli: Cli): void {
  const command = program
    .command('completion')
    .description('print a completion script: bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell it is for').choices(SHELLS))
    .addHelpText('after', '\nFor example: source <(punctual completion bash)');
  runsLocally(cli, command, [], async ({ args }) => {
    cli.stdout.write(completionScript(args[0] as Shell, program));
  });
}

/** The completion script of a shell for a tree of commands. */
export function completionScript(shell: Shell, program: Command): string {
  const positions = positionsOf(program, program, '');
  switch (shell) {
    case 'bash':
      return bashScript(positions);
    case 'zsh':
      return zshScript(positions);
    case 'fish':
      return fishScript(positions);
    default:
      return assertNever(shell);
  }
}

function positionsOf(root: Command, command: Command, path: string): Position[] {
  const globals = root.options.filter((option) =>
    (globalsOf(command) as readonly string[]).includes(option.attributeName()),
  );
  const options = command === root ? command.options : [...command.options, ...globals];
  const words = [
    ...command.commands.map((child) => ({ text: child.name(), description: child.description() })),
    ...command.registeredArguments.flatMap((argument) =>
      (argument.argChoices ?? []).map((choice) => ({ text: choice, description: argument.description })),
    ),
    ...options.filter(hasLongFlag).map((option) => ({ text: option.long, description: option.description })),
    { text: '--help', description: 'show how the command is used' },
  ];
  const children = command.commands.flatMap((child) =>
    positionsOf(root, child, path === '' ? child.name() : `${path} ${child.name()}`),
  );
  return [{ path, words }, ...children];
}

function hasLongFlag(option: Option): option is Option & { long: string } {
  return typeof option.long === 'string' && !option.hidden;
}

const list = (words: readonly Word[]): string => words.map((word) => word.text).join(' ');

function bashScript(positions: readonly Position[]): string {
  const known = positions
    .filter((position) => position.path !== '')
    .map((position) => `    "${position.path}") path="$next" ;;`);
  const cases = positions.map((position) => `    "${position.path}") words="${list(position.words)}" ;;`);
  return `# Completion of punctual for bash. Load it with: source <(punctual completion bash)
_punctual() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" next index
  for ((index = 1; index < COMP_CWORD; index++)); do
    next="\${path:+$path }\${COMP_WORDS[index]}"
    case "$next" in
${known.map((line) => `  ${line}`).join('\n')}
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _punctual punctual
`;
}

const zshQuote = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`;

function zshScript(positions: readonly Position[]): string {
  const known = positions
    .filter((position) => position.path !== '')
    .map((position) => `      "${position.path}") at="$next" ;;`);
  const cases = positions.map((position) => {
    const entries = position.words.map((word) =>
      zshQuote(`${word.text.replace(/:/g, '\\:')}:${word.description}`),
    );
    return `    "${position.path}") entries=(${entries.join(' ')}) ;;`;
  });
  return `#compdef punctual
# Completion of punctual for zsh. Load it with: source <(punctual completion zsh)
_punctual() {
  local at="" next word
  local -a entries
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    next="\${at:+$at }$word"
    case "$next" in
${known.join('\n')}
    esac
  done
  case "$at" in
${cases.join('\n')}
  esac
  _describe 'punctual' entries || _files
}
compdef _punctual punctual
`;
}

const fishQuote = (text: string): string => `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;

function fishScript(positions: readonly Position[]): string {
  const known = positions
    .filter((position) => position.path !== '')
    .map((position) => fishQuote(position.path));
  const lines = positions.flatMap((position) =>
    position.words.map((word) => {
      const condition = fishQuote(`test (__punctual_path) = ${JSON.stringify(position.path)}`);
      const what = word.text.startsWith('--') ? `-l ${word.text.slice(2)}` : `-a ${fishQuote(word.text)}`;
      return `complete -c punctual -n ${condition} ${what} -d ${fishQuote(word.description)}`;
    }),
  );
  return `# Completion of punctual for fish. Load it with: punctual completion fish | source
function __punctual_path
  set -l at
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$at $word")
    if contains -- "$next" ${known.join(' ')}
      set at $next
    end
  end
  echo "$at"
end
${lines.join('\n')}
`;
}
