import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { askYesNo, canAsk } from './ask.js';

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
