import { expect, it } from 'vitest';
import { errorFromAnswer } from './transport.js';

const problem = (fields: object) => JSON.stringify({ detail: 'too much', ...fields });

it('an error carries the quota that the request went beyond', () => {
  const text = problem({ code: 'QUOTA_EXCEEDED', quota: 'submissionsPerSecond', limit: 5 });
  expect(errorFromAnswer(429, text, '1', 'http://node')).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    quota: { name: 'submissionsPerSecond', limit: 5 },
    retryAfter: 1,
  });
  expect(errorFromAnswer(404, problem({ code: 'JOB_NOT_FOUND' }), undefined, 'x').quota).toBeUndefined();
});

it('a payload beyond the quota of its tenant is not explained with a setting of the nodes', () => {
  const beyond = { code: 'PAYLOAD_TOO_LARGE', quota: 'payloadBytes', limit: 100 };
  expect(errorFromAnswer(413, problem(beyond), undefined, 'x').hint).toContain('--quota payloadBytes=N');
  const { hint } = errorFromAnswer(413, problem({ code: 'PAYLOAD_TOO_LARGE' }), undefined, 'x');
  expect(hint).toContain('PUNCTUAL_MAX_PAYLOAD');
});

it('a route that is not found names the path of the address, if it has one', () => {
  const text = problem({ code: 'NOT_FOUND' });
  const at = (from: string) => errorFromAnswer(404, text, undefined, from).message;
  expect(at('http://node:8080/v1')).toBe(
    'too much The address http://node:8080/v1 has the path /v1: is it meant?',
  );
  expect(at('http://node:8080')).toBe('too much');
  expect(at('The node')).toBe('too much');
  expect(errorFromAnswer(404, 'no', undefined, 'http://node/x').message).toContain('has the path /x');
});
