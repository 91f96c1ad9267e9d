import { expect, it } from 'vitest';
import { filterOf, filterQuery, fixedFilter } from './job-filter.js';

const FILTER = {
  state: ['failed', 'cancelled'],
  keyPrefix: 'order-',
  minAttempts: 2,
  payload: { customer: 7, 'address.zip': '01234', code: '7', vip: true, note: null },
  since: new Date(0),
} as const;

it('a filter in a body has its values as JSON', () => {
  expect(filterOf(FILTER)).toEqual({
    state: 'failed,cancelled',
    keyPrefix: 'order-',
    minAttempts: 2,
    payload: FILTER.payload,
    since: '1970-01-01T00:00:00.000Z',
  });
});

it('a filter in a query has texts, and strings that look like something else in quotes', () => {
  expect(filterQuery({ ...FILTER, state: 'failed' })).toEqual({
    state: 'failed',
    keyPrefix: 'order-',
    minAttempts: '2',
    since: '1970-01-01T00:00:00.000Z',
    'payload.customer': '7',
    'payload.address.zip': '01234',
    'payload.code': '"7"',
    'payload.vip': 'true',
    'payload.note': 'null',
  });
});

it('durations are fixed to moments once, and the rest stays', () => {
  expect(fixedFilter({ ...FILTER, since: '1s', until: '500ms' }, 5_000)).toEqual({
    ...FILTER,
    since: '1970-01-01T00:00:04.000Z',
    until: '1970-01-01T00:00:04.500Z',
  });
});
