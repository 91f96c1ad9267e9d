import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addExecOptions, execTargetOf } from './exec-options.js';

function targetOf(...args: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addExecOptions(command);
  command.parse(args, { from: 'user' });
  return execTargetOf(command.opts());
}

describe('the options of a program', () => {
  it('make an exec target', () => {
    expect(
      targetOf(
        ...[
          '--exec',
          'packer@1.0',
          '--arg',
          '-v',
          '--arg',
          'two words',
          '--env',
          'A=1=2',
          '--isolation',
          'required',
        ],
        ...['--env', 'KEY={"$secret": "stripe"}', '--limit', 'memory=256MiB', '--limit', 'cpuTime=90s'],
        ...['--limit', 'cpus=0.5', '--limit', 'files=64', '--artifact-timeout', '2h'],
      ),
    ).toEqual({
      type: 'exec',
      artifact: 'packer@1.0',
      artifactTimeout: '2h',
      args: ['-v', 'two words'],
      env: { A: '1=2', KEY: { $secret: 'stripe' } },
      limits: { memory: 268_435_456, cpuTime: '90s', cpus: 0.5, files: 64 },
      isolation: 'required',
    });
    expect(targetOf('--command', 'ls')).toEqual({ type: 'exec', command: 'ls' });
    expect(targetOf()).toBeUndefined();
  });

  it.each([
    [['--exec', 'a', '--command', 'b'], 'not both'],
    [['--arg', 'x'], '--arg needs --exec or --command'],
    [['--command', 'ls', '--artifact-timeout', '5m'], '--artifact-timeout needs --exec'],
    [['--exec', 'a', '--limit', 'ram=5'], 'memory=256MiB'],
    [['--exec', 'a', '--limit', 'memory=lots'], 'Expected a size'],
    [['--exec', 'a', '--limit', 'files=0'], 'Expected NAME=value'],
    [['--exec', 'a', '--env', 'A'], 'REGION=eu'],
  ])('are refused: %j', (args, message) => {
    expect(() => targetOf(...args)).toThrow(message);
  });
});
