import type { Attack } from '../attack.js';
import { bulk, LARGE_PER_BULK, LONG_STRING, SMALL_OBJECTS } from '../payloads.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_ROUNDS = 6;
const LOG_LINES = 10_000;

/** Workers that report the largest results, and write the largest logs. */
export const attack: Attack = {
  kind: 'large-results',
  summary: 'reports and logs of the largest size',
  mayBeRefusedForLoad: true,
  async run(scene) {
    const worker = await WorkerByHand.register(scene, scene.follower, { queues: ['results'] });
    if (!worker) return;
    const jobs = bulk(LARGE_PER_BULK, () => '"task":"work","queue":"results"');
    const lines = Array.from({ length: LOG_LINES }, () => ({
      ...{ at: new Date().toISOString(), level: 'info', message: 'x'.repeat(20) },
    }));
    await scene.inLanes(1, MAX_ROUNDS, async (n) => {
      await scene.call(scene.leader, 'POST', '/v1/jobs/bulk', jobs, 'jobs to report about');
      const claimed = await worker.claim(LARGE_PER_BULK, '2s');
      await worker.heartbeat(claimed);
      const { jobId = '', fence = 1 } = claimed[0] ?? {};
      const log = JSON.stringify({ fence, lines });
      await Promise.all(
        Array.from({ length: 4 }, () =>
          scene.call(scene.follower, 'POST', `/v1/jobs/${jobId}/logs`, log, 'a large log'),
        ),
      );
      const result = n % 2 === 0 ? LONG_STRING : SMALL_OBJECTS;
      const results = claimed.map(
        (job) => `{"jobId":"${job.jobId}","fence":${job.fence},"outcome":"succeeded","result":${result}}`,
      );
      await worker.call('report', `{"results":[${results.join(',')}]}`, 'a report of large results');
    });
    await worker.leave();
  },
};
