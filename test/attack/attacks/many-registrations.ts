import type { Attack } from '../attack.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_WORKERS = 3_000;
const LIST_EVERY = 250;
const TASKS = 1_000;

/** Workers that register and say no more, some of them with all that a registration can hold. */
export const attack: Attack = {
  kind: 'many-registrations',
  summary: 'thousands of registrations, large ones among them, and lists of workers',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const tasks = Array.from({ length: TASKS }, (_, n) => `task-${n}`.padEnd(128, 'x'));
    const queues = Array.from({ length: TASKS }, (_, n) => `queue-${n}`.padEnd(128, 'x'));
    await scene.inLanes(8, MAX_WORKERS, async (n) => {
      const large = n % 20 === 0 ? { tasks, queues } : {};
      const node = scene.someNode(random);
      const worker = await WorkerByHand.register(scene, node, { slots: 1, queues: ['silent'], ...large });
      if (n % LIST_EVERY !== LIST_EVERY - 1 || !worker) return;
      await scene.call(node, 'GET', '/v1/workers', undefined, 'a list of workers');
      const found = await scene.call(node, 'GET', `/v1/workers/${worker.id}`, undefined, 'a live worker');
      if (!found) scene.wrong(`a worker that has just registered is not found at ${node.name}`);
    });
  },
};
