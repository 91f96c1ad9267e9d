import type { Execution } from '../../../core/execution.js';
import { readJsonText } from '../../../core/json-reader.js';
import { ExecError } from './exec-error.js';
import type { EndedMessage } from './host/messages.js';

/** What the end of a program means for its attempt. */

/** Nested deeper than this, a value could be read but not written again. */
const MOST_LEVELS = 48;
/** The most characters of stderr in an error. */
const EXCERPT = 2_000;

/** Names of signals by their numbers, for programs of which only an exit code is known. */
const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  5: 'SIGTRAP',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS',
};

/** What is known of a program that has ended, for people. */
export function executionOf(
  begun: Pick<Execution, 'isolation' | 'notIsolated' | 'limits'>,
  end: EndedMessage,
): Execution {
  return {
    ...begun,
    ...(end.exitCode !== null && { exitCode: end.exitCode }),
    ...(end.signal !== null && { signal: end.signal }),
    ...(end.by === 'memory' && { outOfMemory: true }),
    ...(end.stdoutTail !== '' && { stdout: end.stdoutTail }),
    ...(end.stderrTail !== '' && { stderr: end.stderrTail }),
    ...(end.isCut && { cut: true }),
  };
}

/** The result of a program that succeeded; throws why it failed if it did not. */
export function resultOfProgram(end: EndedMessage): unknown {
  const error = failureIn(end);
  if (error) throw error;
  return jsonIn(end.stdout);
}

function failureIn(end: EndedMessage): ExecError | null {
  const { exitCode, signal, by, stderrTail } = end;
  const failed = (code: string, message: string) => new ExecError(code, message + excerptOf(stderrTail));
  switch (by) {
    case 'memory':
      return failed('OUT_OF_MEMORY', 'The program used more memory than it may, and was ended.');
    case 'disk':
      return failed('LIMIT_EXCEEDED', 'The program wrote more into its folder than it may, and was ended.');
    case 'worker-stopped':
      return new ExecError(
        'WORKER_STOPPED',
        'The worker was stopped for so long that the program was ended.',
      );
    case 'stop':
      return new ExecError(
        'ATTEMPT_STOPPED',
        'The worker was declared dead meanwhile, and the program ended.',
      );
    case 'timeout':
      return new ExecError('TIMED_OUT', 'The program took longer than its timeout, and was ended.');
    case null:
      break;
  }
  if (signal === null && exitCode === 0) return null;
  const name = signal ?? SIGNALS[(exitCode ?? 0) - 128];
  if (name === 'SIGXCPU') return failed('LIMIT_EXCEEDED', 'The program used more CPU time than it may.');
  if (name === 'SIGXFSZ') return failed('LIMIT_EXCEEDED', 'The program wrote a larger file than it may.');
  if (signal !== null) return failed('SIGNALLED', `The program was ended by ${signal}.`);
  // A tool around the program tells only a number, and a program may end with the same number by itself.
  const guess = name === undefined ? '' : ` (probably ${name})`;
  return failed('EXIT_STATUS', `The program ended with exit code ${exitCode}${guess}.`);
}

function excerptOf(stderr: string): string {
  const text = stderr.trim();
  return text === '' ? '' : `\n${text.slice(-EXCERPT)}`;
}

/** The value that stdout is as JSON; null if it is none. */
function jsonIn(stdout: string | null): unknown {
  const text = stdout?.trim() ?? '';
  if (text === '') return null;
  try {
    return readJsonText(Buffer.from(text), { maxDepth: MOST_LEVELS, allowProto: true });
  } catch {
    return null;
  }
}
