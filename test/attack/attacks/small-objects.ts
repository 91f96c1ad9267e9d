import type { Attack } from '../attack.js';
import { BULK_BYTES, bulk, LARGE_PER_BULK, SMALL_OBJECTS } from '../payloads.js';

const MAX_BULKS = 30;
/** The issue's own number: so many at once cost a term. */
const AT_ONCE = 14;

/** Bodies that are little to read and much to build, at many at once. */
export const attack: Attack = {
  kind: 'small-objects',
  summary: 'large bodies of millions of small objects, several at once',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const allowed = bulk(LARGE_PER_BULK, () => `"task":"work","queue":"objects","payload":${SMALL_OBJECTS}`);
    const refused = `{"jobs":[${'{},'.repeat(BULK_BYTES / 3)}{}]}`;
    const nested = `{"jobs":${'[{"a":'.repeat(20)}${'[[],'.repeat(30)}[]${']'.repeat(30)}${'}]'.repeat(20)}}`;
    const bodies = [
      ['a refused bulk of empty jobs', refused],
      ['a bulk whose payloads are small objects', allowed],
      ['a bulk of nested nothing', nested],
    ] as const;
    await scene.inLanes(AT_ONCE, MAX_BULKS, async (n) => {
      const [about, body] = bodies[n % bodies.length]!;
      await scene.send(scene.someNode(random), { about, method: 'POST', path: '/v1/jobs/bulk', body });
    });
  },
};
