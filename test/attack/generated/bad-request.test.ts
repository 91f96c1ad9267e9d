import { expect, it } from 'vitest';
import { Random } from '../../fault/random.js';
import { BadRequests } from './bad-request.js';
import { ApiDocument } from './document.js';
import { Sampler } from './sample.js';

const KNOWN = {
  job: '01890000-0000-7000-8000-000000000001',
  worker: '01890000-0000-7000-8000-000000000002',
};
const HEADERS = { authorization: 'Bearer k', 'content-type': 'application/json' };

function requests(seed: number, count: number) {
  const random = new Random(seed);
  const document = ApiDocument.read();
  const sampler = new Sampler(document, KNOWN, random.branch());
  const bad = new BadRequests(document.operations, sampler, random.branch(), HEADERS);
  return Array.from({ length: count }, (_, n) => bad.next(n));
}

it('the same seed gives the same bad requests, another seed others', () => {
  expect(requests(7, 500)).toEqual(requests(7, 500));
  expect(requests(8, 500)).not.toEqual(requests(7, 500));
});

it('bad requests come to every route of the document, with bodies, paths, queries, headers and methods spoilt', () => {
  const { operations } = ApiDocument.read();
  const sent = requests(1, operations.length * 60);
  const about = new Set(sent.map((shot) => shot.about.split(' at ')[0]));
  for (const way of [
    'null',
    'a huge number',
    'cut off',
    'in UTF-16',
    'deep brackets',
    'an unknown parameter',
    'an odd id in the path',
    'an odd after in the query',
    'content-type text/plain',
    'without authorization',
    'instead of POST',
  ])
    expect(about).toContain(way);
  for (const [n, operation] of operations.entries()) {
    const paths = sent.filter((_, at) => at % operations.length === n).map((shot) => shot.path);
    const start = operation.path.split('{')[0]!;
    expect(paths.every((path) => path.startsWith(start))).toBe(true);
  }
});

it('dispatch is never really stopped or started for all', () => {
  const sent = requests(3, 20_000).filter(({ path }) => /^\/v1\/cluster\/(pause|resume)/.test(path));
  expect(sent.length).toBeGreaterThan(100);
  expect(sent.every(({ path }) => path.includes('?unknown='))).toBe(true);
});

it('no registered worker is made to speak of a later term, which a leader would have to believe', () => {
  const sent = requests(5, 20_000).filter(({ path }) => path.includes('/heartbeat'));
  const epochs = sent.flatMap(({ body }) =>
    [...String(body ?? '').matchAll(/"epoch":([^,}]+)/g)].map(([, e]) => e),
  );
  expect(epochs.length).toBeGreaterThan(50);
  expect(new Set(epochs)).toEqual(new Set(['0']));
});
