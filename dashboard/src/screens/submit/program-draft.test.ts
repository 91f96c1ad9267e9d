import { expect, it } from 'vitest';
import type { ExecTarget } from '../../../../src/core/job.js';
import { NO_PROGRAM, programDraftOf, programOf } from './program-draft.js';

it('a program is made of what stands in the form, and stands in it again', () => {
  const draft = {
    ...{ artifact: 'packer@1.0', args: '--fast\nin file', isolation: 'required' },
    env: 'REGION=eu=1\nKEY={"$secret":"stripe"}',
  };
  const target = {
    ...{ type: 'exec', artifact: 'packer@1.0', args: ['--fast', 'in file'], isolation: 'required' },
    env: { REGION: 'eu=1', KEY: { $secret: 'stripe' } },
  } as const satisfies ExecTarget;
  expect(JSON.parse(programOf(draft))).toEqual(target);
  expect(programDraftOf(target)).toEqual(draft);
  const least = { ...NO_PROGRAM, artifact: 'packer' };
  expect(programOf(least)).toBe('{"type":"exec","artifact":"packer"}');
  expect(programDraftOf({ type: 'exec', artifact: 'packer' })).toEqual(least);
});

it.each<Partial<ExecTarget>>([
  { limits: { memory: 1 << 26 } },
  { artifactTimeout: '5m' },
  { args: ['two\nlines'] },
  { args: [''] },
  { env: { A: ' spaces ' } },
  { env: { A: '{"$secret":"meant as text"}' } },
])('a program with %o says more than the form can show', (more) => {
  expect(programDraftOf({ type: 'exec', artifact: 'packer', ...more })).toBeNull();
});

it('neither a command nor a call is a program of the form', () => {
  expect(programDraftOf({ type: 'exec', command: '/bin/true' })).toBeNull();
  expect(programDraftOf({ type: 'http', url: 'https://example.com/' })).toBeNull();
});
