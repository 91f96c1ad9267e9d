import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { task } from '../../../src/core/task.js';
import { workflow } from '../../../src/core/workflow/workflow-builder.js';
import type { StoredWorkflowDefinition, Workflow } from '../../../src/core/workflow.js';
import { cliUnderTest } from '../../cli-under-test.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';

/** Definitions as programs and people use them: the SDK and the command line against a real node. */
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const render = task('render', async ({ page }: { page: number }) => ({ html: `<p>${page}</p>` }));
const upload = task('upload', async (input: { html: string; to: string }) => input);

const publish = workflow('publish', (w, input: { page: number; to: string }) => {
  const page = w.run(render, { page: input.page });
  return w.run(upload, { html: page.result.html, to: input.to });
});

async function run(user: TestTenant, args: readonly string[], input: unknown = '') {
  const { cli, stdout, stderr } = cliUnderTest({
    environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    stdin: Readable.from([JSON.stringify(input)]),
  });
  const code = await runCli([...args, '--tenant', user.tenant], cli);
  return { code, stdout: stdout(), stderr: stderr() };
}

it('a program defines its workflow once, and starts it by its code or by its name', async () => {
  const user = node.newTenant();
  await user.work([render, upload]);
  const punctual = user.connect();
  const defined = await punctual.define(publish);
  expect(defined).toMatchObject({ version: 1, steps: 2 });
  expect(defined.jobs.upload).toMatchObject({
    after: ['render'],
    payload: { html: { $from: 'render.result.html' }, to: { $from: 'input.to' } },
  });
  expect((await punctual.define(publish)).version).toBe(1);
  const byCode = await punctual.startDefined(publish, { page: 7, to: 'x' }, { key: 'k' });
  const result: { html: string; to: string } = await byCode.result();
  expect(result).toEqual({ html: '<p>7</p>', to: 'x' });
  expect((await byCode.get()).definition).toEqual({ name: 'publish', version: 1 });
  const byName = await punctual.startDefined('publish', { page: 8, to: 'y' }, { version: 1 });
  expect((await byName.wait()).state).toBe('succeeded');
  const names = [];
  for await (const { name } of punctual.workflowDefinitions()) names.push(name);
  expect(names).toEqual(['publish']);
  expect((await punctual.workflowDefinition('publish', 1)).newest).toBe(true);
  await punctual.deleteWorkflowDefinition('publish');
  await expect(punctual.startDefined('publish', {})).rejects.toMatchObject({ code: 'DEFINITION_NOT_FOUND' });
});

it('a result that the graph of the workflow does not have is an error that names the step and the graph', async () => {
  const user = node.newTenant();
  await user.work([render, upload]);
  const punctual = user.connect();
  const older = workflow('publish', (w) => w.run(render, { page: 1 }, { name: 'older' }));
  await punctual.define(older);
  await punctual.define(publish);
  const run = await punctual.startDefined(publish, { page: 1, to: 'x' }, { version: 1 });
  await expect(run.result()).rejects.toMatchObject({
    code: 'STEP_NOT_FOUND',
    message: expect.stringMatching(/no step "upload".* version 1 of the definition publish/),
  });
  await punctual.start(older, undefined, { key: 'k' });
  const taken = await punctual.start(
    workflow('publish', (w) => ({ page: w.run(render, { page: 1 }) })),
    undefined,
    { key: 'k' },
  );
  await expect(taken.result()).rejects.toMatchObject({
    code: 'STEP_NOT_FOUND',
    message: expect.stringMatching(/no step "render".* by older code with the same key/),
  });
});

it('a function that computes with the input of a definition is told that it is not known yet', async () => {
  const wrong = workflow('wrong', (w, input: { page: number }) => w.run(render, { page: input.page + 1 }));
  await expect(node.newTenant().connect().define(wrong)).rejects.toThrow('input.page is not known before');
});

it('the command line defines, shows, starts and deletes', async () => {
  const user = node.newTenant();
  await user.work([render, upload]);
  const file = {
    name: 'publish',
    jobs: {
      render: { task: 'render', payload: { page: { $from: 'input.page' } } },
      upload: {
        task: 'upload',
        after: ['render'],
        payload: { html: { $from: 'render.result.html' }, to: 'x' },
      },
    },
  };
  expect(await run(user, ['workflow', 'define', '-'], file)).toMatchObject({
    code: 0,
    stdout: 'publish version 1\n',
  });
  expect((await run(user, ['workflow', 'define', '-', '--name', 'other'], file)).stdout).toBe(
    'other version 1\n',
  );
  expect((await run(user, ['workflow', 'define', '-'], { jobs: file.jobs })).stderr).toContain('--name');
  expect((await run(user, ['workflow', 'definitions'])).stdout).toMatch(/other .*\n.*publish /);
  const shown = await run(user, ['workflow', 'definition', 'publish']);
  expect(shown.stdout).toMatch(/version +1\n[\s\S]*render[\s\S]*upload/);
  const json = await run(user, ['workflow', 'definition', 'publish', '--definition-version', '1', '--json']);
  expect((JSON.parse(json.stdout) as StoredWorkflowDefinition).jobs).toEqual(file.jobs);
  const submit = ['workflow', 'submit', '--definition', 'publish', '--json'];
  const started = await run(user, [...submit, '--input', '{"page": 3}', '--wait']);
  expect(JSON.parse(started.stdout) as Workflow).toMatchObject({
    state: 'succeeded',
    definition: { name: 'publish', version: 1 },
  });
  const { id } = JSON.parse(started.stdout) as Workflow;
  expect((await run(user, ['workflow', 'list', '--definition', 'publish', '--wide'])).stdout).toContain(id);
  expect((await run(user, ['workflow', 'get', id])).stdout).toMatch(/definition +publish version 1/);
  expect((await run(user, submit)).stderr).toContain('/input');
  expect(await run(user, ['workflow', 'submit'])).toMatchObject({ code: 2 });
  const schedule = ['schedule', 'create', 'nightly', '--cron', '@daily', '--workflow', 'publish'];
  const both = await run(user, [...schedule, '--input', '{}', '--payload', '{}']);
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('not both')]);
  expect((await run(user, [...schedule, '--input', '{}'])).stderr).toContain('--input');
  expect(await run(user, [...schedule, '--input', '{"page": 4}'])).toMatchObject({ code: 0 });
  expect((await run(user, [...submit, '--payload', '{"page": 5}'])).code).toBe(0);
  const alone = ['schedule', 'create', 'x', '--cron', '@daily', '--task', 'render', '--input', '{}'];
  expect(await run(user, alone)).toMatchObject({ code: 2 });
  const deleted = await run(user, ['workflow', 'undefine', 'publish']);
  expect(deleted.stdout).toBe('deleted publish\n');
  expect(deleted.stderr).toBe('Until publish is defined again, these schedules start nothing: nightly.\n');
  expect((await run(user, ['workflow', 'definition', 'publish'])).code).toBe(5);
});
