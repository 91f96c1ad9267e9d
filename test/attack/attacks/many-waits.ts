import type { Attack } from '../attack.js';

const WAITS = 400;
const CALLS = 200;

/** A program that awaits hundreds of results at a follower, while it goes on submitting there. */
export const attack: Attack = {
  kind: 'many-waits',
  summary: 'hundreds of waits for results at a follower, with other calls beside them',
  // The waits are many, but they ask for nothing that a node has to give but patience.
  mayBeRefusedForLoad: false,
  async run(scene) {
    const job = { task: 'work', queue: 'awaited', delay: '1h' };
    const stored = await scene.call<{ id: string }>(scene.follower, 'POST', '/v1/jobs', job);
    if (!stored) return;
    const waits = Promise.all(
      Array.from({ length: WAITS }, () =>
        scene.call(scene.follower, 'GET', `/v1/jobs/${stored.id}?wait=5s`, undefined, 'one of many waits'),
      ),
    );
    await scene.inLanes(2, CALLS, async () => {
      await scene.call(scene.follower, 'GET', `/v1/jobs/${stored.id}/why`, undefined, 'beside many waits');
      await scene.call(scene.follower, 'GET', '/v1/queues', undefined, 'beside many waits');
      await scene.call(scene.follower, 'POST', '/v1/jobs', job, 'beside many waits');
    });
    await waits;
  },
};
