import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { askSecret, askYesNo, canAsk } from './ask.js';

function terminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const interrupted = new AbortController();
  return { stdin, interrupted, ...cliUnderTest({ stdin, isTTY: true, interrupted: interrupted.signal }) };
}

it.each([
  ['y\n', true],
  ['Y\r\n', true],
  [' yes \n', true],
  ['YES\nn\n', true],
  ['n\n', false],
  ['\n', false],
  ['yesterday\n', false],
])('the answer %j means %s', async (answer, yes) => {
  const { cli, stdin, stderr } = terminal();
  const asking = askYesNo(cli, 'Really?');
  // Typed in two pieces, as a slow line may bring it.
  stdin.write(answer.slice(0, 1));
  stdin.write(answer.slice(1));
  expect(await asking).toBe(yes);
  expect(stderr()).toBe('Really? [y/N] ');
  expect(stdin.isPaused()).toBe(true);
});

it('the end of the input is no yes, even after the letter', async () => {
  const { cli, stdin } = terminal();
  const asking = askYesNo(cli, 'Really?');
  stdin.end('y');
  expect(await asking).toBe(false);
});

it('an interrupted question is given up, and nothing listens any more', async () => {
  const { cli, stdin, interrupted } = terminal();
  const asking = askYesNo(cli, 'Really?');
  interrupted.abort();
  await expect(asking).rejects.toBe(interrupted.signal.reason);
  expect([stdin.isPaused(), stdin.listenerCount('data')]).toEqual([true, 0]);
  await expect(askYesNo(cli, 'Really?')).rejects.toBe(interrupted.signal.reason);
});

it('nobody can be asked where input or errors are no terminal', () => {
  expect(canAsk(terminal().cli)).toBe(true);
  expect(canAsk(cliUnderTest({ isTTY: true }).cli)).toBe(false);
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  expect(canAsk(cliUnderTest({ stdin, isTTY: false }).cli)).toBe(false);
});

describe('a secret', () => {
  /** Somebody at a terminal who types; and in which mode the terminal was when. */
  function rawTerminal() {
    const modes: boolean[] = [];
    const stdin = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode: (on: boolean) => modes.push(on),
    });
    return { stdin, modes, ...cliUnderTest({ stdin, isTTY: true }) };
  }

  it('is read without showing it, and the terminal is left as it was', async () => {
    const { cli, stdin, modes, stderr } = rawTerminal();
    const asked = askSecret(cli, 'Key: ');
    stdin.write('pk_a');
    stdin.write('x\u007f');
    stdin.write('b\r');
    expect(await asked).toBe('pk_ab');
    expect(modes).toEqual([true, false]);
    expect(stderr()).toBe('Key: \n');
  });

  it('is given up with Ctrl-C, which leaves the terminal as it was', async () => {
    const { cli, stdin, modes } = rawTerminal();
    const asked = askSecret(cli, 'Key: ');
    stdin.write('pk_\u0003');
    await expect(asked).rejects.toThrow('No key was given');
    expect(modes).toEqual([true, false]);
  });

  it.each(['pk_ab\nmore', 'pk_ab'])('may be the first line of stdin: %j', async (text) => {
    const { cli } = cliUnderTest({ stdin: Readable.from([text]) });
    expect(await askSecret(cli, 'Key: ')).toBe('pk_ab');
  });
});
