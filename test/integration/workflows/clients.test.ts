import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/program.js';
import { WorkflowFailedError } from '../../../src/client/workflow-handle.js';
import { PermanentError, task } from '../../../src/core/task.js';
import { workflow } from '../../../src/core/workflow/workflow-builder.js';
import type { Workflow } from '../../../src/core/workflow.js';
import { cliUnderTest, type ShellOptions } from '../../cli-under-test.js';
import { TestNode, type TestTenant } from '../../node-for-tests.js';

/** Workflows as programs and people use them: the SDK and the command line against a real node. */
let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const render = task('render', async ({ page }: { page: number }) => ({
  html: `<p>${page}</p>`,
  sizes: [page, 2],
}));
const join = task('join', async (input: { html: string; size: number; paid?: number }) => input);
let isMended = false;
const fragile = task('fragile', async () => {
  if (!isMended) throw new PermanentError('the glass broke');
  return 'whole';
});
const TASKS = [render, join, fragile];

function run(user: TestTenant, args: readonly string[], input: unknown = '', shell: ShellOptions = {}) {
  const { cli, stdout, stderr } = cliUnderTest({
    ...shell,
    environment: { PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: node.apiKey },
    stdin: Readable.from([typeof input === 'string' ? input : JSON.stringify(input)]),
  });
  return runCli([...args, '--tenant', user.tenant], cli).then((code) => ({
    code,
    stdout: stdout(),
    stderr: stderr(),
  }));
}

const DIAMOND = {
  name: 'diamond',
  jobs: {
    a: { task: 'render', payload: { page: 1 } },
    b: { task: 'render', payload: { page: { $from: 'a.result.sizes.1' } }, after: ['a'] },
    c: { task: 'fragile', after: ['a'] },
    d: { task: 'join', payload: { html: { $from: 'b.result.html' }, size: 1 }, after: ['b', 'c'] },
  },
};

describe('a program', () => {
  it('gets the result of the step that its workflow returns', async () => {
    const user = node.newTenant();
    await user.work(TASKS);
    const publish = workflow('publish', (w, page: number) => {
      const a = w.run(render, { page });
      return w.run(join, { html: a.result.html, size: a.result.sizes[1]! });
    });
    const started = await user.connect().start(publish, 7, { key: 'publish-7' });
    expect(await started.result()).toEqual({ html: '<p>7</p>', size: 2 });
    const again = await user.connect().start(publish, 7, { key: 'publish-7' });
    expect(again.id).toBe(started.id);
    const listed = [];
    for await (const each of user.connect().workflows({ state: ['succeeded'], name: 'publish' }))
      listed.push(each.id);
    expect(listed).toEqual([started.id]);
  });

  it('sends the event that a step waits for, whose payload goes on to other steps', async () => {
    const user = node.newTenant();
    await user.work(TASKS);
    const order = workflow('order', (w) => {
      const paid = w.wait<{ amount: number }>({ event: 'paid', timeout: '1h' });
      return { joined: w.run(join, { html: '', size: 0, paid: paid.result.amount }), paid };
    });
    const started = await user.connect().start(order);
    expect((await started.get()).state).toBe('running');
    await started.sendEvent('paid', { amount: 42 });
    expect(await started.result()).toEqual({ joined: { html: '', size: 0, paid: 42 }, paid: { amount: 42 } });
  });

  it('is told which step failed and why, and runs the failed steps again', async () => {
    const user = node.newTenant();
    await user.work(TASKS);
    isMended = false;
    const glass = workflow('glass', (w) => w.run(render, { page: 1 }, { after: [w.run(fragile)] }));
    const started = await user.connect().start(glass);
    const failure = await started.result().catch((error) => error);
    expect(failure).toBeInstanceOf(WorkflowFailedError);
    expect(failure.message).toContain('step fragile failed: the glass broke');
    expect((await started.wait()).jobs.render?.state).toBe('skipped');
    isMended = true;
    await started.retry();
    expect(await started.result()).toMatchObject({ html: '<p>1</p>' });
  });

  it('holds, releases and repeats a workflow, whose results have their types', async () => {
    const user = node.newTenant();
    const pages = workflow('pages', (w, page: number) => w.run(render, { page }));
    const started = await user.connect().start(pages, 3);
    expect((await started.hold()).held).toBe(true);
    await user.work(TASKS);
    expect((await started.release()).held).toBe(false);
    expect((await started.result()).html).toBe('<p>3</p>');
    const again = await started.rerun({ key: 'again' });
    expect(again.id).not.toBe(started.id);
    expect((await again.result()).html).toBe('<p>3</p>');
    const shown = await again.get();
    expect([shown.rerunOf, shown.key]).toEqual([started.id, 'again']);
    expect(shown.criticalPath.steps.map(({ name }) => name)).toEqual(['render']);
  });

  it('cancels a workflow by its id', async () => {
    const user = node.newTenant();
    const started = await user.connect().start(workflow('idle', (w) => w.wait('1h')));
    await user.connect().workflow(started.id).cancel();
    expect((await started.wait()).state).toBe('cancelled');
  });
});

describe('the command line', () => {
  it('submits a workflow and waits for its end; exit code 3 if it fails', async () => {
    const user = node.newTenant();
    await user.work(TASKS);
    isMended = true;
    const good = await run(user, ['workflow', 'submit', '-', '--wait'], DIAMOND);
    expect(good.stdout).toMatch(/state +succeeded/);
    expect(good.code).toBe(0);
    isMended = false;
    const bad = await run(user, ['workflow', 'submit', '-', '--wait'], DIAMOND);
    expect(bad.code).toBe(3);
    expect(bad.stderr).toContain('step c failed');
  });

  it('refuses files in which a name is given twice, and says where in the file a mistake is', async () => {
    const user = node.newTenant();
    const twice = '{"name": "x", "jobs": {"a": {"task": "step"}, "a": {"task": "small"}}}';
    for (const verb of ['submit', 'define']) {
      const { code, stderr } = await run(user, ['workflow', verb, '-'], twice);
      expect([code, stderr]).toEqual([2, expect.stringContaining('/jobs/a: is given twice')]);
    }
    const members = '{"jobs": [{"task": "a", "payload": {"n": 1, "n": 2}}]}';
    const batch = await run(user, ['batch', 'submit', '-'], members);
    expect([batch.code, batch.stderr]).toEqual([
      2,
      expect.stringContaining('/jobs/0/payload/n: is given twice'),
    ]);
    const jobs = { a: { task: 'step', payload: { $from: 'input.to.0' } } };
    const inFile = await run(user, ['workflow', 'submit', '-'], { name: 'x', jobs, input: { to: [] } });
    expect(inFile.stderr).toContain('error: /input/to/0: is missing');
    const option = await run(user, ['workflow', 'submit', '-', '--input', '{"to": []}'], { name: 'x', jobs });
    expect(option.stderr).toContain('error: --input (/to/0): is missing');
  });

  it('draws the graph with its states, also for Graphviz and Mermaid', async () => {
    const user = node.newTenant();
    const id = (await run(user, ['workflow', 'submit', '-'], DIAMOND)).stdout.trim();
    const { stdout } = await run(user, ['workflow', 'graph', id.slice(0, 18)]);
    expect(stdout).toBe('◌ a\n├─────┐\n○ b   ○ c\n└──┬──┘\n   ○ d\n\n○ 3 blocked  ◌ 1 pending\n');
    expect((await run(user, ['workflow', 'graph', id, '--dot'])).stdout).toContain('  "b" -> "d";');
    expect((await run(user, ['workflow', 'graph', id, '--mermaid'])).stdout).toContain('["d"]:::blocked');
    const both = await run(user, ['workflow', 'graph', id, '--dot', '--mermaid']);
    expect(both.code).toBe(2);
  });

  it('shows, lists, retries, cancels and watches workflows', async () => {
    const user = node.newTenant();
    await user.work(TASKS);
    isMended = false;
    const id = (await run(user, ['workflow', 'submit', '-', '--key', 'k'], DIAMOND)).stdout.trim();
    const watched = await run(user, ['workflow', 'watch', id]);
    expect(watched.code).toBe(3);
    expect(watched.stdout.trimEnd().split('\n').at(-1)).toMatch(/failed, 4 of 4 steps ended, 1 failed$/);
    expect((await run(user, ['workflow', 'get', id])).stdout).toMatch(/^c +failed +a /m);
    const [listed] = JSON.parse((await run(user, ['workflow', 'list', '--key', 'k', '--json'])).stdout).data;
    expect(listed).toMatchObject({ id, state: 'failed', key: 'k' });
    isMended = true;
    expect((await run(user, ['workflow', 'retry', id])).code).toBe(0);
    const screen = await run(user, ['workflow', 'watch', id], '', { isTTY: true, columns: 80 });
    expect(screen.code).toBe(0);
    expect(screen.stdout).toContain('└──┬──┘');
    expect((await run(user, ['workflow', 'cancel', id])).code).toBe(6);
    expect((await run(user, ['workflow', 'get', '01890000-0000-7000-8000-000000000000'])).code).toBe(5);
  });

  it('holds, releases and repeats workflows, and shows the critical path', async () => {
    const user = node.newTenant();
    isMended = true;
    const id = (await run(user, ['workflow', 'submit', '-'], DIAMOND)).stdout.trim();
    expect((await run(user, ['workflow', 'hold', id])).stdout).toContain(
      'running, 0 of 4 steps ended, on hold',
    );
    expect((await run(user, ['workflow', 'hold', id])).code).toBe(6);
    expect((await run(user, ['workflow', 'list'])).stdout).toContain('running (on hold)');
    expect((await run(user, ['workflow', 'graph', id])).stdout).toContain('\non hold: no step starts\n');
    expect(
      (await run(user, ['job', 'why', (await user.connect().workflow(id).get()).jobs.a!.id])).stdout,
    ).toContain('on hold');
    expect((await run(user, ['workflow', 'release', id])).code).toBe(0);
    await user.work(TASKS);
    await user.connect().workflow(id).wait();
    const shown = (await run(user, ['workflow', 'get', id])).stdout;
    expect(shown).not.toContain('ATTEMPTS');
    const timed = (await run(user, ['workflow', 'get', id, '--include', 'attempts'])).stdout;
    expect(timed).toMatch(/^STEP +STATE .* WAITED +RAN +ATTEMPTS$/m);
    expect(timed).toMatch(/^d +succeeded .* [\d.]+m?s +[\d.]+m?s +1$/m);
    expect(shown).toMatch(/^CRITICAL PATH +STATE +WAITED +RAN +TOTAL$/m);
    expect(shown).toMatch(/^in all +[\d.]+m?s +[\d.]+m?s +[\d.]+m?s$/m);
    expect((await run(user, ['workflow', 'graph', id])).stdout).toMatch(
      /^critical path \([\d.]+m?s\): a → [bc] → d$/m,
    );
    const again = await run(user, ['workflow', 'rerun', id, '--key', 'k2']);
    expect(again.stdout).toMatch(/^[0-9a-f-]{36}\n$/);
    const repeated = await user.connect().workflow(again.stdout.trim()).wait();
    expect([repeated.rerunOf, repeated.state]).toEqual([id, 'succeeded']);
    const from = await run(user, ['workflow', 'retry', repeated.id, '--from', 'b']);
    expect(from.stdout).toContain('running, 2 of 4 steps ended');
    const job = (await run(user, ['job', 'get', repeated.jobs.b!.id])).stdout;
    expect(job).toMatch(/^steps before +1 \(1 in all\)$/m);
    expect(job).toMatch(/^steps behind +1 \(1 in all\)$/m);
  });

  it('tells a workflow of an event', async () => {
    const user = node.newTenant();
    const submission = { name: 'w', jobs: { w: { wait: { event: 'paid' } } } };
    const id = (await run(user, ['workflow', 'submit', '-'], submission)).stdout.trim();
    expect((await run(user, ['workflow', 'event', id, 'paid', '--payload', '{"amount":1}'])).code).toBe(0);
    const { jobs } = await user.connect().workflow(id).wait();
    const ended: Workflow['jobs'][string] = jobs.w!;
    expect((await user.job(ended.id)).result).toEqual({ amount: 1 });
  });

  it('names the cycle of a graph that cannot run', async () => {
    const user = node.newTenant();
    const jobs = { a: { task: 'x', after: ['b'] }, b: { task: 'x', after: ['a'] } };
    const { code, stderr } = await run(user, ['workflow', 'submit', '-'], { name: 'w', jobs });
    expect(code).toBe(2);
    expect(stderr).toContain('a → b → a');
  });
});
