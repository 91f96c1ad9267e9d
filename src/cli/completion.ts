import { Argument, type Command, type Option } from 'commander';
import { assertNever } from '../core/errors.js';
import { globalsOf, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { VALUES_COMMAND } from './completion-values.js';
import { kindOfArgument, kindOfOption, type ValueKind } from './value-kinds.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** A position on the command line, and the words that may follow there. */
interface Position {
  /** The commands before it, separated by blanks; empty at the beginning. */
  readonly path: string;
  readonly words: readonly Word[];
  /** What the values of its options may be, where that is known. */
  readonly values: readonly OptionValues[];
  /** What its argument names, so that nodes can be asked. */
  readonly argument: ValueKind | null;
}

interface Word {
  readonly text: string;
  readonly description: string;
  /** Whether it is an option that takes a value. */
  readonly takesValue?: boolean;
}

/** The values of an option: a few fixed ones, or what the nodes know. */
interface OptionValues {
  readonly flag: string;
  readonly choices: readonly string[];
  readonly kind: ValueKind | null;
}

/** `punctual completion SHELL`: a completion script, generated from the commands. */
export function addCompletionCommand(program: Command, cli: Cli): void {
  const command = program
    .command('completion')
    .description('print a completion script: bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell it is for').choices(SHELLS))
    .addHelpText('after', '\nFor example: source <(punctual completion bash)');
  runsLocally(cli, command, [], async ({ args }) => {
    cli.stdout.write(completionScript(args[0] as Shell, program, process.argv[1]));
  });
}

/** The completion script of a shell for a tree of commands; it runs the executable to ask nodes for names. */
export function completionScript(shell: Shell, program: Command, executable = 'punctual'): string {
  const positions = positionsOf(program, program, '');
  switch (shell) {
    case 'bash':
      return bashScript(positions, executable);
    case 'zsh':
      return zshScript(positions, executable);
    case 'fish':
      return fishScript(positions, executable);
    default:
      return assertNever(shell);
  }
}

function positionsOf(root: Command, command: Command, path: string): Position[] {
  const globals = root.options.filter((option) =>
    (globalsOf(command) as readonly string[]).includes(option.attributeName()),
  );
  const options = (command === root ? command.options : [...command.options, ...globals]).filter(hasLongFlag);
  const words: Word[] = [
    ...command.commands.map((child) => ({ text: child.name(), description: child.description() })),
    ...command.registeredArguments.flatMap((argument) =>
      (argument.argChoices ?? []).map((choice) => ({ text: choice, description: argument.description })),
    ),
    ...options.map((option) => ({
      text: option.long,
      description: option.description,
      takesValue: option.required || option.optional,
    })),
    { text: '--help', description: 'show how the command is used' },
  ];
  const values = options
    .map((option) => ({
      flag: option.long,
      choices: option.argChoices ?? [],
      kind: option.required || option.optional ? kindOfOption(option) : null,
    }))
    .filter(({ choices, kind }) => choices.length > 0 || kind !== null);
  const [first] = command.registeredArguments;
  const argument = first ? kindOfArgument(command, first) : null;
  const children = command.commands.flatMap((child) =>
    positionsOf(root, child, path === '' ? child.name() : `${path} ${child.name()}`),
  );
  return [{ path, words, values, argument }, ...children];
}

function hasLongFlag(option: Option): option is Option & { long: string } {
  return typeof option.long === 'string' && !option.hidden;
}

const list = (words: readonly Word[]): string => words.map((word) => word.text).join(' ');
const shellQuote = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`;

/** The lines of a `case` that follow the typed commands to a position. */
function knownPaths(positions: readonly Position[], variable: string): string {
  return positions
    .filter((position) => position.path !== '')
    .map((position) => `      "${position.path}") ${variable}="$next" ;;`)
    .join('\n');
}

/** The lines of a `case` for the values of options. */
function valueCases(positions: readonly Position[], choices: (words: readonly string[]) => string): string {
  return positions
    .flatMap(({ path, values }) =>
      values.map((value) => {
        const found = value.kind === null ? choices(value.choices) : `kind=${value.kind}`;
        return `    "${path} ${value.flag}") ${found} ;;`;
      }),
    )
    .join('\n');
}

/**
 * What was typed and what nodes answer is never evaluated: the line is split by `read`, and candidates are compared as
 * they are. (`compgen -W` would run a `$(…)` among its words; it gets only words of this script.)
 */
function bashScript(positions: readonly Position[], executable: string): string {
  const cases = positions.map(({ path, words, argument }) => {
    const kind = argument === null ? '' : ` [[ "$current" == -* ]] || kind=${argument}`;
    return `        "${path}") words="${list(words)}";${kind} ;;`;
  });
  return `# Completion of punctual for bash. Load it with: source <(punctual completion bash)
_punctual() {
  local line="\${COMP_LINE:0:COMP_POINT}" path="" option="" kind="" words="" current next word count
  local -a typed
  read -ra typed <<< "$line"
  [[ "$line" == *[[:space:]] ]] && typed+=("")
  count=\${#typed[@]}
  ((count > 1)) || return
  current="\${typed[count - 1]}"
  for word in "\${typed[@]:1:count - 2}"; do
    next="\${path:+$path }$word"
    case "$next" in
${knownPaths(positions, 'path')}
    esac
    option="$word"
  done
  if [[ "$current" == --*=* ]]; then
    option="\${current%%=*}"
    current="\${current#*=}"
  fi
  case "$path $option" in
${valueCases(positions, (words) => `words="${words.join(' ')}"`)}
    *)
      case "$path" in
${cases.join('\n')}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n "$kind" ]]; then
    compopt +o default 2> /dev/null
    while IFS= read -r word; do
      [[ -n "$word" && "$word" == "$current"* ]] && COMPREPLY+=("$word")
    done <<< "$(${shellQuote(executable)} ${VALUES_COMMAND} "$kind" "\${typed[@]:1}" 2> /dev/null < /dev/null)"
  fi
  # Readline takes what stands after a colon for a word of its own.
  if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    next="\${current%"\${current##*:}"}"
    COMPREPLY=("\${COMPREPLY[@]#"$next"}")
  fi
}
complete -o default -F _punctual punctual
`;
}

function zshScript(positions: readonly Position[], executable: string): string {
  const cases = positions.map(({ path, words, argument }) => {
    const entries = words.map((word) =>
      shellQuote(`${word.text.replace(/:/g, '\\:')}:${word.description.replace(/:/g, '\\:')}`),
    );
    const kind = argument === null ? '' : `; [[ "$words[CURRENT]" == -* ]] || kind=${argument}`;
    return `        "${path}") entries=(${entries.join(' ')})${kind} ;;`;
  });
  return `#compdef punctual
# Completion of punctual for zsh. Load it with: source <(punctual completion zsh)
_punctual() {
  local at="" option="" kind="" next word
  local -a entries found
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    next="\${at:+$at }$word"
    case "$next" in
${knownPaths(positions, 'at')}
    esac
    option="$word"
  done
  if [[ "$words[CURRENT]" == --*=* ]]; then
    option="\${words[CURRENT]%%=*}"
    compset -P '*='
  fi
  case "$at $option" in
${valueCases(positions, (words) => `found=(${words.map(shellQuote).join(' ')})`)}
    *)
      case "$at" in
${cases.join('\n')}
      esac ;;
  esac
  if [[ -n "$kind" ]]; then
    found+=(\${(f)"$(${shellQuote(executable)} ${VALUES_COMMAND} "$kind" "\${words[@]:1}" 2> /dev/null < /dev/null)"})
  fi
  (( $#found )) && compadd -a found
  if (( $#entries )); then
    _describe 'punctual' entries
  elif [[ -z "$kind" ]] && (( ! $#found )); then
    _files
  fi
}
compdef _punctual punctual
`;
}

const fishQuote = (text: string): string => `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`;

function fishScript(positions: readonly Position[], executable: string): string {
  const known = positions
    .filter((position) => position.path !== '')
    .map((position) => fishQuote(position.path));
  const lines = positions.flatMap(({ path, words, values, argument }) => {
    const when = `complete -c punctual -n ${fishQuote(`test (__punctual_path) = ${JSON.stringify(path)}`)}`;
    const named = argument === null ? [] : [`${when} -f -a '(__punctual_values ${argument})'`];
    return [
      ...words.map(({ text, description, takesValue }) => {
        const value = values.find(({ flag }) => flag === text);
        const what = text.startsWith('--')
          ? `-l ${text.slice(2)}${valueText(value, takesValue)}`
          : `-f -a ${fishQuote(text)}`;
        return `${when} ${what} -d ${fishQuote(description)}`;
      }),
      ...named,
    ];
  });
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
function __punctual_values
  ${fishQuote(executable)} ${VALUES_COMMAND} $argv[1] (commandline -opc)[2..-1] 2> /dev/null < /dev/null
end
${lines.join('\n')}
`;
}

function valueText(value: OptionValues | undefined, takesValue = false): string {
  if (value === undefined) return takesValue ? ' -r' : '';
  return value.kind === null
    ? ` -x -a ${fishQuote(value.choices.join(' '))}`
    : ` -x -a '(__punctual_values ${value.kind})'`;
}
