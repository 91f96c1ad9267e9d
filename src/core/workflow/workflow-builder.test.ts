import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { http } from '../http-target.js';
import { task } from '../task.js';
import { buildAddition, type Returned, type WorkflowBuilder, workflow } from './workflow-builder.js';

const render = task('render', { timeout: '5m' }, async (input: { page: number }) => ({
  html: `<p>${input.page}</p>`,
  images: [{ url: 'a' }],
}));
const upload = task('up.load', async (_input: { html: string; image?: string }) => true);
const tidy = task('tidy', async () => 'done');

describe('building a workflow', () => {
  it('names the step whose input cannot be sent', async () => {
    const broken = workflow('broken', (w) => {
      w.run(tidy, undefined, { name: 'fine' });
      w.run('elsewhere', { at: 1n });
    });
    await expect(broken.build(undefined)).rejects.toMatchObject({
      errors: [{ pointer: '/jobs/elsewhere/payload' }],
    });
  });

  it('takes results into the body of a call, beside secrets, and puts the call behind their steps', async () => {
    const publish = workflow('publish', (w, input: { page: number }) => {
      const a = w.run(render, input);
      const body = { html: a.result.html, key: { $secret: 'key' } };
      w.run(http({ url: 'https://a.example', body }), undefined, { name: 'call' });
    });
    const { submission } = await publish.build({ page: 7 });
    expect(submission.jobs.call).toEqual({
      target: {
        ...{ type: 'http', url: 'https://a.example' },
        body: { html: { $from: 'render.result.html' }, key: { $secret: 'key' } },
      },
      after: ['render'],
    });
  });

  it('makes a submission in which results are references and edges', async () => {
    const publish = workflow('publish', { onFailure: 'stop' }, (w, input: { page: number }) => {
      const a = w.run(render, input);
      const b = w.run(upload, { html: a.result.html, image: a.result.images[0]!.url }, { delay: '5s' });
      const paid = w.wait<{ amount: number }>({ event: 'paid', timeout: '2d' }, { after: [b] });
      w.wait('30m', { after: [paid] });
      w.run(tidy, undefined, { after: [a, b], runIf: 'any-failed', name: 'alert' });
      w.run('elsewhere', [paid.result.amount, { all: a.result }, new Date(0)]);
      return b;
    });
    expect(await publish.build({ page: 7 })).toEqual({
      submission: {
        name: 'publish',
        onFailure: 'stop',
        jobs: {
          render: { task: 'render', timeout: '5m', payload: { page: 7 } },
          'up-load': {
            task: 'up.load',
            payload: {
              html: { $from: 'render.result.html' },
              image: { $from: 'render.result.images.0.url' },
            },
            delay: '5s',
            after: ['render'],
          },
          paid: { wait: { event: 'paid', timeout: '2d' }, after: ['up-load'] },
          wait: { wait: '30m', after: ['paid'] },
          alert: { task: 'tidy', after: ['render', 'up-load'], runIf: 'any-failed' },
          elsewhere: {
            task: 'elsewhere',
            payload: [
              { $from: 'paid.result.amount' },
              { all: { $from: 'render.result' } },
              '1970-01-01T00:00:00.000Z',
            ],
            after: ['paid', 'render'],
          },
        },
      },
      returned: 'up-load',
    });
  });

  it('numbers steps of the same task, and is called anew at each start', async () => {
    const many = workflow('many', (w, count: number) => {
      const steps = Array.from({ length: count }, () => w.run(tidy));
      return { last: steps.at(-1)!, first: steps[0]! };
    });
    const names = async (count: number) => Object.keys((await many.build(count)).submission.jobs);
    expect(await names(3)).toEqual(['tidy', 'tidy-2', 'tidy-3']);
    expect(await names(1)).toEqual(['tidy']);
    expect((await many.build(2)).returned).toEqual({ last: 'tidy-2', first: 'tidy' });
  });

  it('leaves out numbers that are taken by names', async () => {
    const mixed = workflow('mixed', (w) => {
      w.run(tidy);
      w.run(tidy, undefined, { name: 'tidy-2' });
      w.run(tidy);
      w.run('tidy-2');
      w.run(tidy, undefined, { name: 'tidy-4' });
      w.run(tidy);
      w.run('input');
    });
    const names = Object.keys((await mixed.build(undefined)).submission.jobs);
    expect(names).toEqual(['tidy', 'tidy-2', 'tidy-3', 'tidy-2-2', 'tidy-4', 'tidy-5', 'input-2']);
  });

  it('names as many steps as a workflow may have without trying all numbers for each', async () => {
    const { has } = Map.prototype;
    let looks = 0;
    Map.prototype.has = function (key) {
      looks++;
      return has.call(this, key);
    };
    try {
      await workflow('many', (w) => {
        for (let i = 0; i < 10_000; i++) w.run('tidy');
      }).build(undefined);
    } finally {
      Map.prototype.has = has;
    }
    expect(looks).toBeLessThan(100_000);
  });

  it('checks an input against the schema of its task, unless the input refers to results', async () => {
    const strict = task('strict', { input: z.object({ n: z.number() }) }, async ({ n }) => n);
    const wrong = workflow('wrong', (w) => w.run(strict, { n: 'one' as unknown as number }));
    await expect(wrong.build(undefined)).rejects.toMatchObject({
      errors: [{ pointer: '/jobs/strict/payload/n' }],
    });
    const open = workflow('open', (w) =>
      w.run(strict, { n: w.run(strict, { n: 1 }).result }, { name: 'second' }),
    );
    expect((await open.build(undefined)).submission.jobs.second?.payload).toEqual({
      n: { $from: 'strict.result' },
    });
  });

  it.each<[string, (w: WorkflowBuilder) => Returned, RegExp]>([
    [
      'a name that is taken',
      (w) => [w.run(tidy, undefined, { name: 'a' }), w.run(tidy, undefined, { name: 'a' })][0],
      /a step "a" already/,
    ],
    ['a name that is none', (w) => w.run(tidy, undefined, { name: 'a.b' }), /"a\.b" must be 1 to 64/],
    [
      'an option that does not exist',
      (w) => w.run(tidy, undefined, { afer: [] } as object),
      /Did you mean after\?/,
    ],
    [
      'a computation with a result',
      (w) => w.run('x', `${w.run(render, { page: 1 }).result.html}!`),
      /render\.result\.html is not known before/,
    ],
    [
      'spreading a result',
      (w) => w.run('x', { ...(w.run(render, { page: 1 }).result as object) }),
      /render\.result is not known before/,
    ],
    [
      'a field that a reference cannot name',
      (w) => w.run('x', w.run('y').result['a.b']),
      /cannot be part of a reference/,
    ],
    ['an input that is not JSON', (w) => w.run('x', { n: 1n }), /cannot be written as JSON/],
    ['a function as input', (w) => w.run('x', () => 1), /cannot be written as JSON/],
  ])('refuses %s', async (_, build, message) => {
    const define = () => workflow('w', build).build(undefined);
    await expect(Promise.resolve().then(define)).rejects.toThrow(message);
  });

  it('says why a workflow inside another one cannot be given what is not known yet', async () => {
    const inside = workflow('inside', (w, input: { page: unknown }) => w.run('x', { page: input.page }));
    const ofInput = workflow('outer', (w, input: { page: unknown }) => {
      w.workflow(inside, { page: input.page });
    });
    await expect(ofInput.buildDefinition()).rejects.toMatchObject({
      errors: [
        { detail: expect.stringMatching(/^input\.page is the input of another workflow: .* inside it$/) },
      ],
    });
    const ofResult = workflow('outer', (w) => {
      w.workflow(inside, { page: w.run('y', {}).result });
    });
    await expect(ofResult.build(undefined)).rejects.toMatchObject({
      errors: [{ detail: expect.stringMatching(/^y\.result is the result of a step of another workflow/) }],
    });
  });

  it('refuses steps of another workflow', async () => {
    const kept: { name: string; result: unknown }[] = [];
    await workflow('one', (w) => {
      kept.push(w.run(tidy));
    }).build(undefined);
    const after = workflow('two', (w) => w.run(tidy, undefined, { after: kept }));
    await expect(Promise.resolve().then(() => after.build(undefined))).rejects.toThrow(
      /step of another workflow/,
    );
    const input = workflow('three', (w) => w.run('x', kept[0]!.result));
    await expect(Promise.resolve().then(() => input.build(undefined))).rejects.toThrow(
      /step of another workflow/,
    );
  });

  it('wants a name and a function', () => {
    expect(() => workflow('a b', () => undefined)).toThrow(/must be 1 to 128/);
    expect(() => workflow('a', {} as never)).toThrow(/pass one last/);
    expect(() => workflow('a', { onFailur: 'stop' } as never, () => undefined)).toThrow(
      /Did you mean onFailure/,
    );
  });
});

describe('steps that a running step adds', () => {
  it('carry types, make edges and may follow steps that the workflow has', async () => {
    const addition = await buildAddition(
      (w) => {
        const a = w.run('render', { page: 1 }, { name: 'a' });
        w.run('join', { html: a.result.html, of: w.step('plan').result.total }, { name: 'b' });
        w.workflow(
          workflow('part', (v) => v.run('x')),
          undefined,
          { name: 'c', after: [a] },
        );
      },
      { join: false },
    );
    expect(addition).toEqual({
      join: false,
      jobs: {
        a: { task: 'render', payload: { page: 1 } },
        b: {
          task: 'join',
          payload: { html: { $from: 'a.result.html' }, of: { $from: 'plan.result.total' } },
          after: ['a', 'plan'],
        },
        c: { workflow: { name: 'part', jobs: { x: { task: 'x' } } }, after: ['a'] },
      },
    });
  });

  it('must have names, and be at least one', async () => {
    const unnamed = buildAddition((w) => w.run('x', undefined, {} as never));
    await expect(unnamed).rejects.toThrow(/give each step that is added a name/);
    await expect(buildAddition(() => undefined)).rejects.toThrow(/added no step/);
  });
});
