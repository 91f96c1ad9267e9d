import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { completionScript } from './completion.js';
import { buildProgram } from './program.js';

const program = buildProgram(cliUnderTest().cli);

/** What bash would offer after these words. */
function offered(...words: string[]): string[] {
  const script = `${completionScript('bash', program)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_punctual; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const run = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  return run.stdout.trim().split('\n');
}

describe('completion', () => {
  it('offers nouns, verbs and options in bash', () => {
    expect(offered('punctual', 'wo')).toEqual(['worker']);
    expect(offered('punctual', 'job', 're')).toEqual(['release', 'retry', 'redrive']);
    expect(offered('punctual', 'job', 'submit', '--ma')).toEqual(['--max-attempts']);
    expect(offered('punctual', 'job', 'list', '--te')).toEqual(['--tenant']);
    expect(offered('punctual', '--json', 'queue', 'pa')).toEqual(['pause']);
    expect(offered('punctual', 'completion', 'f')).toEqual(['fish']);
  });

  it('knows every command in zsh and fish too', () => {
    for (const shell of ['zsh', 'fish'] as const) {
      const script = completionScript(shell, program);
      for (const noun of program.commands) expect(script).toContain(noun.name());
    }
  });
});
