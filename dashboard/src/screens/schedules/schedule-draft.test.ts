import { expect, it } from 'vitest';
import type { ScheduleView } from '../../../../src/core/wire.js';
import { changeOf, creationOf, draftOf, EMPTY, mistakesOf } from './schedule-draft.js';

const NIGHTLY = { ...EMPTY, task: 'report', cron: '30 2 * * *', timezone: 'Europe/Berlin' };

it('a schedule is made of what stands in the form, and its payload keeps its digits', () => {
  const { body, cli } = creationOf('nightly', { ...NIGHTLY, payload: '{"id": 12345678901234567890}' });
  expect(body).toBe(
    '{"name":"nightly","task":"report","payload":{"id": 12345678901234567890},"cron":"30 2 * * *","timezone":"Europe/Berlin"}',
  );
  expect(cli).toBe(
    `punctual schedule create nightly --task report --payload '{"id": 12345678901234567890}' --cron '30 2 * * *' --timezone Europe/Berlin`,
  );
});

it('a workflow, a batch and a call are said in their own way', () => {
  const every = { ...EMPTY, due: 'every', every: '5m' } as const;
  expect(JSON.parse(creationOf('w', { ...every, runs: 'workflow', workflow: 'import' }).body)).toEqual({
    ...{ name: 'w', workflow: 'import', every: '5m' },
  });
  const call = creationOf('c', { ...every, runs: 'target', url: 'https://example.com/?a b', queue: 'hooks' });
  expect(JSON.parse(call.body)).toMatchObject({
    target: { type: 'http', method: 'POST', url: 'https://example.com/?a b' },
    queue: 'hooks',
  });
  expect(call.cli).toContain(`--http POST 'https://example.com/?a b'`);
  const batch = creationOf('b', { ...every, runs: 'batch', batch: '{"jobs":\n [{"task":"a"}]}', queue: 'x' });
  expect(JSON.parse(batch.body)).toEqual({ name: 'b', batch: { jobs: [{ task: 'a' }] }, every: '5m' });
  expect(batch.cli).toBe(`echo '{"jobs": [{"task":"a"}]}' | punctual schedule create b --batch - --every 5m`);
  expect(mistakesOf({ ...every, runs: 'batch', batch: '{' })).toHaveProperty('/batch');
});

it('only what was changed is sent, and what was emptied goes back to its default', () => {
  const view = {
    ...{ name: 'nightly', task: 'report', cron: '30 2 * * *', timezone: 'UTC', overlap: 'skip' },
    ...{ catchUp: { within: '6h' }, endAt: '2027-01-01T00:00:00.000Z', payload: { a: 1 }, priority: 7 },
  } as unknown as ScheduleView;
  const before = draftOf(view);
  expect(changeOf('nightly', before, before)).toBeNull();
  const after = { ...before, due: 'every', every: '1h', overlap: '', priority: '3' } as const;
  const { body, cli } = changeOf('nightly', before, after)!;
  expect(JSON.parse(body)).toEqual({ every: '1h', priority: 3, timezone: null, overlap: null });
  expect(cli).toBe(
    'punctual schedule change nightly --every 1h --priority 3 --unset timezone --unset overlap',
  );
});
