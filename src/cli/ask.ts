import { PunctualError } from '../core/errors.js';
import type { Cli } from './cli.js';

/** Whether somebody can be asked: there is a terminal to read from, and one to show the question on. */
export function canAsk(cli: Cli): boolean {
  return cli.stdin.isTTY === true && cli.stderr.isTTY === true;
}

/**
 * Asks a question on stderr; only `y` and `yes` mean yes, and so does nothing else, not even the end of the input.
 * The terminal stays in its usual mode, so that Ctrl-C is a signal as everywhere; then the question is given up.
 */
export async function askYesNo(cli: Cli, question: string): Promise<boolean> {
  cli.stderr.write(`${question} [y/N] `);
  try {
    return /^\s*y(es)?\s*$/i.test(await readLine(cli));
  } finally {
    cli.stdin.pause();
  }
}

/** Asks for a secret: without echo on a terminal, else the first line of stdin. */
export async function askSecret(cli: Cli, question: string, what = 'key'): Promise<string> {
  const stdin = cli.stdin as Cli['stdin'] & { setRawMode?(on: boolean): unknown };
  if (!canAsk(cli) || !stdin.setRawMode) {
    try {
      return await readLine(cli, true);
    } finally {
      cli.stdin.pause();
    }
  }
  cli.stderr.write(question);
  stdin.setRawMode(true);
  try {
    return await readHidden(cli, what);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    cli.stderr.write('\n');
  }
}

/** Reads what is typed while the terminal leaves everything to the program. */
function readHidden({ stdin, interrupted }: Cli, what: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = '';
    const end = (settle: () => void) => {
      stdin.off('data', onData).off('end', onEnd).off('error', onEnd);
      interrupted.removeEventListener('abort', onInterrupt);
      settle();
    };
    const onEnd = () => end(() => resolve(line));
    const onInterrupt = () => end(() => reject(interrupted.reason));
    const onData = (piece: Buffer | string) => {
      for (const char of piece.toString()) {
        // Ctrl-C is no signal in this mode.
        if (char === '\u0003') return end(() => reject(new PunctualError('USAGE', `No ${what} was given.`)));
        if (char === '\r' || char === '\n' || char === '\u0004') return onEnd();
        line = char === '\u007f' || char === '\b' ? line.slice(0, -1) : line + char;
      }
    };
    if (interrupted.aborted) return onInterrupt();
    interrupted.addEventListener('abort', onInterrupt, { once: true });
    stdin.on('data', onData).on('end', onEnd).on('error', onEnd);
    stdin.resume();
  });
}

function readLine({ stdin, stderr, interrupted }: Cli, mayEnd = false): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = '';
    const end = (settle: () => void) => {
      stdin.off('data', onData).off('end', onEnd).off('error', onEnd);
      interrupted.removeEventListener('abort', onInterrupt);
      settle();
    };
    const onData = (piece: Buffer | string) => {
      line += piece.toString();
      if (line.includes('\n')) end(() => resolve(line.slice(0, line.indexOf('\n'))));
    };
    const onEnd = () => {
      stderr.write('\n');
      end(() => resolve(mayEnd ? line : ''));
    };
    const onInterrupt = () => {
      stderr.write('\n');
      end(() => reject(interrupted.reason));
    };
    if (interrupted.aborted) return onInterrupt();
    interrupted.addEventListener('abort', onInterrupt, { once: true });
    stdin.on('data', onData).on('end', onEnd).on('error', onEnd);
    stdin.resume();
  });
}
