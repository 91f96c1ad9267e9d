import { describe, expect, it } from 'vitest';
import { turnsOf } from '../../../test/turns-of-the-loop.js';
import { JsonText } from '../json-reader.js';
import {
  allSteps,
  parseAdditions,
  parseGraph,
  parseWorkflow,
  readDefinitionForm,
  readWorkflowForm,
  withPlaces,
} from './parse-workflow.js';

const CONTEXT = {
  ...{ now: 0, maxPayload: 1_000, maxDepth: 16, maxBulkBytes: 10_000_000 },
  ...{ jobTimeout: 60_000, maxJobTimeout: 60_000, allowCommands: false },
};

function json(value: unknown): JsonText {
  const text = JSON.stringify(value);
  return new JsonText(text, Buffer.byteLength(text));
}

/** What takes long to be searched for references. */
const LARGE = json([{ $from: 'a.result' }, ...Array.from({ length: 1_000_000 }, () => [])]);

const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    ({ code, errors }: { code: string; errors: { pointer: string; detail: string }[] }) => ({ code, errors }),
  );

const tooLarge = (pointer: string) => ({
  code: 'PAYLOAD_TOO_LARGE',
  errors: [{ pointer, detail: 'must be at most 1000 bytes as JSON' }],
});

describe('what is too large', () => {
  const jobs = { a: { task: 'a' }, b: { task: 'b', after: ['a'], payload: LARGE } };

  it.each<[string, () => Promise<unknown>, string]>([
    ['a payload', () => parseWorkflow({ name: 'w', jobs }, CONTEXT), '/jobs/b/payload'],
    ['a payload of a definition', () => parseGraph({ jobs }, CONTEXT), '/jobs/b/payload'],
    ['a payload of added steps', () => parseAdditions({ b: jobs.b }, CONTEXT), '/jobs/b/payload'],
    [
      'an input',
      () => parseWorkflow({ name: 'w', input: LARGE, jobs: { a: { task: 'a' } } }, CONTEXT),
      '/input',
    ],
  ])('is not searched for references: %s', async (_, parse, pointer) => {
    const { longestMs } = await turnsOf(async () =>
      expect(await errorOf(parse())).toEqual(tooLarge(pointer)),
    );
    expect(longestMs).toBeLessThan(150);
  });
});

describe('an input', () => {
  it('is not looked at while no step refers to it', async () => {
    const form = { name: 'w', input: json({ $from: 'a.result' }), jobs: { a: { task: 'a' } } };
    const { steps } = await parseWorkflow(form, CONTEXT);
    expect(steps).toHaveLength(1);
  });
});

describe('the input of the workflow', () => {
  const payload = json([{ $from: 'input.a' }]);

  it('is not that of steps that are added later', async () => {
    expect(await errorOf(parseAdditions({ b: { task: 'b', payload } }, CONTEXT))).toMatchObject({
      errors: [{ pointer: '/jobs/b/payload/0/$from', detail: '"input.a": added steps have no input' }],
    });
  });

  it('is not that of a workflow inside it', async () => {
    const workflow = { jobs: { b: { task: 'b', payload: [{ $from: 'input.a' }] } } };
    const form = { name: 'w', input: json({ a: 1 }), jobs: { sub: { workflow } } };
    expect(await errorOf(parseWorkflow(form, CONTEXT))).toMatchObject({
      errors: [{ pointer: '/jobs/sub/workflow/input', detail: 'is missing: step "b" needs "input.a"' }],
    });
  });
});

it('knows where the steps of workflows inside each other stand', async () => {
  const inner = (jobs: object) => ({ workflow: { jobs } });
  const jobs = { a: { task: 'a' }, b: inner({ c: { task: 'c' }, d: inner({ e: { task: 'e' } }) }) };
  const { steps } = await parseWorkflow({ name: 'w', jobs }, CONTEXT);
  const places = [...withPlaces(steps)].map(({ step, pointer }) => [step.name, pointer]);
  expect(Object.fromEntries(places)).toEqual({
    a: '/jobs/a',
    b: '/jobs/b',
    c: '/jobs/b/workflow/jobs/c',
    d: '/jobs/b/workflow/jobs/d',
    e: '/jobs/b/workflow/jobs/d/workflow/jobs/e',
  });
});

it('finds the steps of workflows that were read as text, however deep, and leaves out what cannot be read', async () => {
  const text = (value: string) => new JsonText(value, Buffer.byteLength(value));
  const jobs = {
    a: { task: 'a' },
    b: { workflow: text('{"jobs":{"c":{"task":"c"},"d":{"workflow":{"jobs":{"e":{"task":"e"}}}}}}') },
    f: { workflow: text('{"jobs":{"g":{"task":"g"},"g":{"task":"h"}}}') },
    i: { workflow: text('7') },
  };
  const found = await allSteps(jobs, CONTEXT);
  expect(found.flatMap((step) => (step as { task?: string }).task ?? [])).toEqual(['a', 'c', 'e']);
});

describe('the body of a call', () => {
  const call = (body: unknown, more: object = {}) => ({
    ...{ target: { type: 'http', url: 'https://a.example', body }, after: ['a'] },
    ...more,
  });
  const parse = (step: object, input?: JsonText) =>
    parseWorkflow({ name: 'w', jobs: { a: { task: 'a' }, b: step }, ...(input && { input }) }, CONTEXT);

  it('is the payload of its step if it refers to results or to the input', async () => {
    const body = { html: { $from: 'a.result.html' }, to: { $from: 'input' }, key: { $secret: 'k' } };
    const { steps } = await parse(call(body), json('me'));
    expect(steps[1]).toMatchObject({
      payload: '{"html":{"$from":"a.result.html"},"to":"me","key":{"$secret":"k"}}',
      refers: true,
      definition: { target: { body } },
    });
    const plain = await parse(call({ $from: 'a.result', and: 1 }));
    expect(plain.steps[1]).toMatchObject({ payload: 'null', refers: false });
  });

  it.each<[string, object, string]>([
    ['an unknown step', call([{ $from: 'c.result' }]), '/jobs/b/target/body/0/$from'],
    ['what is no reference', call({ a: { $from: 'a' } }), '/jobs/b/target/body/a/$from'],
    ['a payload beside it', call({ a: { $from: 'a.result' } }, { payload: json(1) }), '/jobs/b/payload'],
  ])('is refused with %s, and says where', async (_, step, pointer) => {
    expect(await errorOf(parse(step))).toMatchObject({ errors: [{ pointer }] });
    const { after: __, ...added } = step as { after: unknown };
    if (pointer.endsWith('/a/$from'))
      expect(await errorOf(parseAdditions({ b: added }, CONTEXT))).toMatchObject({ errors: [{ pointer }] });
  });
});

describe('what says nothing', () => {
  it('is refused: a step of no kind', async () => {
    const jobs = { a: { after: [] } };
    const detail = 'is missing: give one of "task", "target", "wait" and "workflow"';
    expect(await errorOf(parseWorkflow({ name: 'w', jobs }, CONTEXT))).toMatchObject({
      errors: [{ pointer: '/jobs/a/task', detail }],
    });
  });

  it('is refused: what becomes of running steps when nothing stops', () => {
    const form = { name: 'w', jobs: { a: { task: 'a' } }, running: 'cancel' };
    const { name: _, ...definition } = form;
    const refusal = '/running: "cancel" goes together with "onFailure": "stop" alone';
    expect(() => readWorkflowForm(form)).toThrow(refusal);
    expect(() => readDefinitionForm({ ...definition, onFailure: 'continue' })).toThrow(refusal);
    expect(readWorkflowForm({ ...form, onFailure: 'stop' })).toMatchObject({ running: 'cancel' });
    expect(readWorkflowForm({ ...form, running: 'finish' })).toMatchObject({ running: 'finish' });
  });

  it('is refused in a workflow that is a step, too', async () => {
    const jobs = { outer: { workflow: { jobs: { a: { task: 'a' } }, running: 'cancel' } } };
    const detail = '"cancel" goes together with "onFailure": "stop" alone';
    expect(await errorOf(parseWorkflow({ name: 'w', jobs }, CONTEXT))).toMatchObject({
      errors: [{ pointer: '/jobs/outer/workflow/running', detail }],
    });
  });

  it('is named by what was probably meant', () => {
    const form = { name: 'w', jobs: { a: { task: 'a' } }, onfailure: 'stop' };
    expect(() => readWorkflowForm(form)).toThrow(
      '/onfailure: is not a known field; did you mean "onFailure"?',
    );
  });
});
