import type { Attack } from '../attack.js';
import { bulk, LARGE_PER_BULK, LONG_STRING, SMALL_OBJECTS } from '../payloads.js';

/** So many bulks hold somewhat more large jobs than the longest page. */
const BULKS = 17;
const MAX_LISTS = 60;

/** Long and many lists over jobs with the largest payloads. */
export const attack: Attack = {
  kind: 'large-lists',
  summary: 'lists with limit=1000 over jobs with the largest payloads, several at once',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    // Half of the time goes into jobs, so that there is something to list in a short round too.
    const payloads = [LONG_STRING, SMALL_OBJECTS].map((payload) =>
      bulk(LARGE_PER_BULK, () => `"task":"work","queue":"listed","payload":${payload}`),
    );
    for (let n = 0; n < BULKS && !scene.isHalfOver; n += 1) {
      const body = payloads[n % payloads.length]!;
      await scene.call(scene.follower, 'POST', '/v1/jobs/bulk', body, 'large jobs to list');
    }
    const pages = ['?limit=1000', '?limit=1000&queue=listed', '', '?state=pending&limit=1000'];
    await scene.inLanes(6, MAX_LISTS, async (n) => {
      const path = `/v1/jobs${pages[n % pages.length]}`;
      await scene.send(scene.someNode(random), { about: 'a list of large jobs', method: 'GET', path });
    });
  },
};
