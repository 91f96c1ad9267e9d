import fc from 'fast-check';
import { expect, it } from 'vitest';
import { InLine, WaitingLine } from './waiting-line.js';

class Person extends InLine<Person> {
  constructor(readonly number: number) {
    super();
  }
}

it('gives out those who wait in the order of arrival, whoever leaves and comes back meanwhile', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('join' as const), who: fc.nat(9) }),
    fc.record({ kind: fc.constant('leave' as const), who: fc.nat(9) }),
    fc.record({ kind: fc.constant('next' as const), who: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const people = Array.from({ length: 10 }, (_, number) => new Person(number));
      const line = new WaitingLine<Person>();
      const other = new WaitingLine<Person>();
      let model: number[] = [];
      for (const { kind, who } of steps) {
        const person = people[who]!;
        expect(other.leave(person)).toBe(false);
        if (kind === 'next') expect(line.next()?.number).toBe(model.shift());
        else if (kind === 'leave') {
          expect(line.leave(person)).toBe(model.includes(who));
          model = model.filter((each) => each !== who);
        } else if (!model.includes(who)) {
          line.join(person);
          model.push(who);
        }
      }
      for (const number of model) expect(line.next()?.number).toBe(number);
      expect(line.next()).toBeNull();
    }),
  );
});
