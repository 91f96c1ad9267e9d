import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerView } from '../../../src/core/wire.js';
import type { Attack } from '../attack.js';
import { bulk } from '../payloads.js';
import type { Scene } from '../scene.js';
import { WorkerByHand } from '../worker-by-hand.js';

const LANES = 400;
/** Between two new connections: a node accepts few of them per iteration of its loop, and that is not tested here. */
const RAMP_MS = 10;
const MAX_CALLS = 20_000;
const EXPIRING_JOBS = 2_000;
const EXPIRES_MS = 500;
const HEARTBEAT_EVERY_MS = 1_000;
/** Far less than the worker timeout, and far more than a heartbeat takes that waits for nobody. */
const MAX_HEARTBEAT_MS = 3_000;

/** Hundreds of calls that only the leader can answer, all at a follower that a worker lives behind. */
export const attack: Attack = {
  kind: 'crowded-follower',
  summary:
    'hundreds of lists and redrives at once at a follower, with a worker behind it that must stay alive',
  mayBeRefusedForLoad: true,
  async run(scene) {
    const { follower } = scene;
    const startBefore = new Date(Date.now() + EXPIRES_MS).toISOString();
    const expiring = bulk(
      EXPIRING_JOBS,
      () => `"task":"work","queue":"crowded","startBefore":"${startBefore}"`,
    );
    await scene.call(follower, 'POST', '/v1/jobs/bulk', expiring, 'jobs to redrive');
    const worker = await WorkerByHand.register(scene, follower, { queues: ['nothing'], slots: 1 });
    if (!worker) return scene.wrong('the worker could not register');
    const calls = [
      ['GET', '/v1/workers?limit=200', undefined],
      ['GET', '/v1/queues', undefined],
      ['POST', '/v1/jobs/redrive', { queue: 'crowded' }],
      ['GET', `/v1/workers/${worker.id}`, undefined],
    ] as const;
    const crowd = scene.inLanes(LANES, MAX_CALLS, async (n) => {
      if (n < LANES) await sleep(n * RAMP_MS);
      const [method, path, body] = calls[n % calls.length]!;
      return scene.call(follower, method, path, body, 'one of a crowd');
    });
    await Promise.all([crowd, live(scene, worker)]);
    const view = await scene.call<WorkerView>(scene.leader, 'GET', `/v1/workers/${worker.id}`);
    if (view?.state !== 'alive') scene.wrong(`the worker behind the follower is ${view?.state}`);
  },
};

async function live(scene: Scene, worker: WorkerByHand): Promise<void> {
  while (!scene.isOver) {
    const { status, ms } = await worker.heartbeat([]);
    if (status !== 200) scene.wrong(`a heartbeat behind the follower was answered ${status}`);
    if (ms > MAX_HEARTBEAT_MS) scene.wrong(`a heartbeat behind the follower took ${Math.round(ms)} ms`);
    await sleep(HEARTBEAT_EVERY_MS);
  }
}
