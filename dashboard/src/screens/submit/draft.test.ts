import { expect, it } from 'vitest';
import type { Job } from '../../../../src/core/job.js';
import { parseExactly } from '../../api/exact-json.js';
import { bodyOf, draftOfJob, EMPTY, mistakesOf } from './draft.js';

it('a job of a call that is edited and run again keeps every digit of its payload and of its call', () => {
  const job = parseExactly(`{
    "task": null, "queue": "default", "priority": 5, "delivery": "at-most-once", "timeout": "1m", "concurrencyKey": null,
    "requires": {}, "retry": {}, "payload": {"id": 9007199254740993},
    "target": {"type": "http", "url": "https://example.com/", "method": "PUT", "body": {"id": 12345678901234567890}}
  }`) as Job;
  const body = bodyOf(draftOfJob(job));
  expect(body).toContain('"payload":{ "id": 9007199254740993 }');
  expect(body).toContain('"body":{"id":12345678901234567890}');
});

it('what is no object is no target, and is told before it is sent', () => {
  for (const kind of ['http', 'other'] as const)
    for (const target of ['null', '7', '"x"', '[]', '{'])
      expect(mistakesOf({ ...EMPTY, kind, target })).toHaveProperty(['/target']);
  expect(mistakesOf({ ...EMPTY, kind: 'http', target: ' {"timeout": "10s"}' })).toEqual({});
});
