import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HttpTarget } from '../../../core/job.js';
import { CallPlans } from './call-plan.js';

const URLS = ['http://a.example/x?y=1', 'https://b.example:8443/', 'http://a.example/z'] as const;

it('says of each target what it says itself, whatever was asked about the same address before', () => {
  const target: fc.Arbitrary<HttpTarget> = fc
    .record({
      url: fc.constantFrom(...URLS),
      method: fc.constantFrom(undefined, 'GET', 'POST', 'PUT'),
      timeout: fc.constantFrom(undefined, '1s', '5s'),
      body: fc.constantFrom(undefined, { a: 1 }),
      headers: fc.constantFrom(
        undefined,
        {},
        { 'x-a': '1' },
        { 'x-a': '2' },
        { 'X-A': '1', 'Content-Type': 'text/plain' },
        { 'x-a': { $secret: 'a' } },
        { 'x-a': { $secret: 'a', prefix: 'p' } },
      ),
    })
    .map((each) => ({ type: 'http', ...each }) as HttpTarget);
  fc.assert(
    fc.property(fc.array(target, { maxLength: 20 }), (targets) => {
      const plans = new CallPlans('http://node.example');
      for (const each of targets) {
        const plan = plans.of(each);
        expect(plan).toEqual(new CallPlans('http://node.example').of(each));
        expect(plan.address.origin + plan.address.path).toBe(new URL(each.url).href);
        expect(plan.method).toBe(each.method ?? 'POST');
      }
    }),
  );
});

it('works out what a definition has in common once, also when the bodies differ', () => {
  const plans = new CallPlans(undefined);
  const plan = plans.of({ type: 'http', url: URLS[0], headers: { 'x-a': '1' }, body: 1 });
  expect(plans.of({ type: 'http', url: URLS[0], headers: { 'x-a': '1' }, body: 2 })).toBe(plan);
  expect(plans.of({ type: 'http', url: URLS[0], headers: { 'x-a': '2' } })).not.toBe(plan);
});

it('keeps a bounded number of them', () => {
  const plans = new CallPlans(undefined);
  const at = (n: number): HttpTarget => ({ type: 'http', url: `http://a.example/${n}` });
  const first = plans.of(at(0));
  for (let n = 1; n < 1_000; n++) plans.of(at(n));
  expect(plans.of(at(0))).toBe(first);
  plans.of(at(1_000));
  expect(plans.of(at(0))).not.toBe(first);
});

it('refuses a header that could begin another one', () => {
  const target: HttpTarget = { type: 'http', url: URLS[0], headers: { 'x-a': 'a\r\nhost: b' } };
  expect(() => new CallPlans(undefined).of(target)).toThrow(/x-a cannot be sent/);
});

it('keeps none that is large', () => {
  const plans = new CallPlans(undefined);
  const large: HttpTarget = { type: 'http', url: URLS[0], headers: { 'x-a': 'a'.repeat(4_096) } };
  expect(plans.of(large)).not.toBe(plans.of(large));
});

it('refuses headers that the call itself sets, should one ever get here', () => {
  for (const name of ['punctual-token', 'Traceparent', 'webhook-signature', 'host']) {
    const target: HttpTarget = { type: 'http', url: URLS[0], headers: { [name]: 'forged' } };
    expect(() => new CallPlans(undefined).of(target)).toThrow(/that the call itself sets/);
  }
});
