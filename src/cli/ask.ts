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

function readLine({ stdin, stderr, interrupted }: Cli): Promise<string> {
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
      end(() => resolve(''));
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
