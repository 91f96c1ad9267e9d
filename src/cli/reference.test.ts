import { expect, it } from 'vitest';
import { cliReference } from '../../test/cli-reference.js';
import { cliUnderTest } from '../../test/cli-under-test.js';
import { buildProgram } from './program.js';

it('docs/cli.md describes the commands as they are', async () => {
  const program = buildProgram(cliUnderTest().cli);
  await expect(cliReference(program)).toMatchFileSnapshot('../../docs/cli.md');
});
