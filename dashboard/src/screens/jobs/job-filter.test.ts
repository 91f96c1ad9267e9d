import { expect, it } from 'vitest';
import { bodyFilter, filterOfText, textOfFilter } from './job-filter.js';

const NOW = Date.parse('2026-01-02T03:04:05.000Z');

it('a change of many jobs never means more jobs than the filter that is shown, whatever stands in it', () => {
  for (const text of ['payload.__proto__=1', 'payload.constructor=1', 'payload.toString=x']) {
    const read = filterOfText(text);
    if ('wrong' in read) throw new Error(read.wrong);
    const { payload } = JSON.parse(JSON.stringify(bodyFilter(read.filter, NOW)));
    expect(Object.keys(payload ?? {})).toHaveLength(1);
  }
});

it('moments that are so long ago stand still while the change is carried out', () => {
  expect(bodyFilter({ state: 'failed', since: '2h' }, NOW)).toEqual({
    state: 'failed',
    since: '2026-01-02T01:04:05.000Z',
  });
});

it('a filter is the same after it was written and read', () => {
  const filter = { state: 'failed', key: 'a "quoted" key', 'payload.name': 'x y' };
  expect(filterOfText(textOfFilter(filter))).toEqual({ filter });
});
