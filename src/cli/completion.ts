import { Argument, type Command, type Option } from 'commander';
import { assertNever } from '../core/errors.js';
import { globalsOf, runsLocally } from './call.js';
import type { Cli } from './cli.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** One place on the command line, and what may follow there. */
interface Place {
  /** The commands typed so far, separated by blanks; empty at the beginning. */
  readonly path: string;
  readonly words: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly description: string;
}

/** `punctual completion SHELL`: a script for the shell, made from the commands themselves. */
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
  const places = placesOf(program, program, '');
  switch (shell) {
    case 'bash':
      return bashScript(places);
    case 'zsh':
      return zshScript(places);
    case 'fish':
      return fishScript(places);
    default:
      return assertNever(shell);
  }
}

function placesOf(root: Command, command: Command, path: string): Place[] {
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
    placesOf(root, child, path === '' ? child.name() : `${path} ${child.name()}`),
  );
  return [{ path, words }, ...children];
}

function hasLongFlag(option: Option): option is Option & { long: string } {
  return typeof option.long === 'string' && !option.hidden;
}

const list = (words: readonly Word[]): string => words.map((word) => word.text).join(' ');

function bashScript(places: readonly Place[]): string {
  const known = places
    .filter((place) => place.path !== '')
    .map((place) => `    "${place.path}") path="$next" ;;`);
  const cases = places.map((place) => `    "${place.path}") words="${list(place.words)}" ;;`);
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

function zshScript(places: readonly Place[]): string {
  const known = places
    .filter((place) => place.path !== '')
    .map((place) => `      "${place.path}") at="$next" ;;`);
  const cases = places.map((place) => {
    const entries = place.words.map((word) =>
      zshQuote(`${word.text.replace(/:/g, '\\:')}:${word.description}`),
    );
    return `    "${place.path}") entries=(${entries.join(' ')}) ;;`;
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

function fishScript(places: readonly Place[]): string {
  const known = places.filter((place) => place.path !== '').map((place) => fishQuote(place.path));
  const lines = places.flatMap((place) =>
    place.words.map((word) => {
      const condition = fishQuote(`test (__punctual_path) = ${JSON.stringify(place.path)}`);
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
