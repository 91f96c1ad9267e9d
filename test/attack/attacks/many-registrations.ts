import type { Attack } from '../attack.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_WORKERS = 3_000;
const LIST_EVERY = 250;
const TASKS = 1_000;
/** Names of tasks that just fit into a registration. */
const MOST_TASKS = 8_000;

/** Workers that register and say no more, some of them with all that a registration can hold. */
export const attack: Attack = {
  kind: 'many-registrations',
  summary: 'thousands of registrations, large ones and ones of many kinds among them, and lists of workers',
  mayBeRefusedForLoad: true,
  async run(scene, random) {
    const tasks = Array.from({ length: TASKS }, (_, n) => `task-${n}`.padEnd(128, 'x'));
    const queues = Array.from({ length: TASKS }, (_, n) => `queue-${n}`.padEnd(128, 'x'));
    // No two of these are alike, so that nothing that is known of one holds for another.
    const kind = (n: number) => ({
      tasks: Array.from({ length: MOST_TASKS }, (_, task) => `kind-${n}-task-${task}`),
      labels: { kind: `${n}` },
    });
    await scene.inLanes(8, MAX_WORKERS, async (n) => {
      const large = n % 20 === 0 ? { tasks, queues } : n % 20 === 10 ? kind(n) : {};
      const node = scene.someNode(random);
      const worker = await WorkerByHand.register(scene, node, { slots: 1, queues: ['silent'], ...large });
      if (n % LIST_EVERY !== LIST_EVERY - 1 || !worker) return;
      await scene.call(node, 'GET', '/v1/workers', undefined, 'a list of workers');
      const found = await scene.call(node, 'GET', `/v1/workers/${worker.id}`, undefined, 'a live worker');
      if (!found) scene.wrong(`a worker that has just registered is not found at ${node.name}`);
    });
  },
};
