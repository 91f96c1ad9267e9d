import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { completionScript } from './completion.js';
import { globalsAmong } from './completion-values.js';
import { buildProgram, runCli } from './program.js';

const program = buildProgram(cliUnderTest().cli);
const folder = mkdtempSync(join(tmpdir(), "punctual's completion-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Stands for the program: answers with names, some of which would be trouble for a careless shell script. */
const executable = join(folder, 'punctual');
const trap = join(folder, 'trapped');
const NAMES = ['mail', 'mail:high', 'main', `$(touch\${IFS}'${trap}')`, '`touch trapped`', '*', 'a b'];
writeFileSync(
  executable,
  `#!/bin/sh\nif [ "$2" = queue ]; then cat <<'END'\n${NAMES.join('\n')}\nEND\nelse echo "$*"; fi\n`,
);
chmodSync(executable, 0o755);

/** What bash would offer after this line. */
function offered(line: string): string[] {
  const script = `${completionScript('bash', program, executable)}
COMP_LINE="$1"; COMP_POINT=\${#1}
_punctual; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const run = spawnSync('bash', ['-c', script, 'bash', line], { encoding: 'utf8', cwd: folder });
  expect(run.stderr).toBe('');
  return run.stdout.trimEnd().split('\n');
}

describe('completion', () => {
  it('offers nouns, verbs and options in bash', () => {
    expect(offered('punctual wo')).toEqual(['worker', 'workflow']);
    expect(offered('punctual job re')).toEqual(['release', 'retry', 'redrive']);
    expect(offered('punctual job submit --ma')).toEqual(['--max-attempts']);
    expect(offered('punctual job list --te')).toEqual(['--tenant']);
    expect(offered('punctual --json queue pa')).toEqual(['pause']);
    expect(offered('punctual completion f')).toEqual(['fish']);
  });

  it('offers the values of an option', () => {
    expect(offered('punctual job list --state s')).toEqual(['succeeded', 'skipped']);
    expect(offered('punctual job list --state=p')).toEqual(['pending']);
    expect(offered('punctual schedule create a --dst-gap ')).toEqual(['shift', 'skip']);
  });

  it('offers names that the nodes know, and hands on what was typed', () => {
    expect(offered('punctual job list --queue mai')).toEqual(['mail', 'mail:high', 'main']);
    expect(offered('punctual queue pause mail')).toEqual(['mail', 'mail:high']);
    expect(offered('punctual queue pause mail:')).toEqual(['high']);
    expect(offered('punctual --tenant acme job get ')).toContain('__values job --tenant acme job get');
    expect(offered('punctual job list --task ')).toEqual(['__values task job list --task']);
  });

  it('evaluates neither what was typed nor what a node answers', () => {
    expect(offered('punctual queue get ')).toEqual(expect.arrayContaining(NAMES));
    offered(`punctual queue get $(touch '${trap}')`);
    offered(`punctual queue get \`touch '${trap}'\` `);
    offered('punctual job list --queue "$(touch trapped)');
    expect(existsSync(trap)).toBe(false);
  });

  it('knows every command and every source of names in zsh and fish too', () => {
    for (const shell of ['zsh', 'fish'] as const) {
      const script = completionScript(shell, program, executable);
      for (const noun of program.commands) expect(script).toContain(noun.name());
      for (const kind of ['job', 'worker', 'queue', 'schedule', 'task', 'tenant']) {
        expect(script).toMatch(new RegExp(`(kind=|__punctual_values )${kind}\\b`));
      }
    }
  });
});

describe('the values', () => {
  it('are none, without a word, when no node answers or nothing is known', async () => {
    for (const environment of [{}, { PUNCTUAL_URL: 'http://127.0.0.1:1', PUNCTUAL_API_KEY: 'k' }]) {
      const { cli, stdout, stderr } = cliUnderTest({ environment, folder });
      for (const kind of ['queue', 'task', 'toString']) expect(await runCli(['__values', kind], cli)).toBe(0);
      expect(stdout() + stderr()).toBe('');
    }
  });

  it('do not keep anybody waiting for a node that does not answer', async () => {
    const server = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { cli, stdout, stderr } = cliUnderTest({
      environment: { PUNCTUAL_URL: url, PUNCTUAL_API_KEY: 'k' },
    });
    // Without a limit of its own a request waits for half a minute, longer than the test may take.
    expect(await runCli(['__values', 'queue'], cli)).toBe(0);
    expect(stdout() + stderr()).toBe('');
  });

  it('are asked for with the global options on the line', () => {
    expect(globalsAmong(['--tenant=acme', 'job', 'list', '--url', 'http://a', '--api-key'])).toEqual({
      tenant: 'acme',
      url: 'http://a',
    });
  });
});
