import type { Attack } from '../attack.js';
import { bulk } from '../payloads.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_ROUNDS = 100;
const PER_ROUND = 40;
const SLOTS = 200;
const REDRIVE_EVERY = 5;
/** Escapes that JSON allows and that texts in a database do not. */
const ODD = ['\\u0000', '\\ud800', '\\udc00\\ud800', 'a\\u0000b', '\\u001f\\u007f\\u2028', '\\ud83d\\ude00'];
const LISTS = [
  '/v1/jobs?limit=200',
  '/v1/jobs?queue=odd-texts&include=payload,stack',
  '/v1/jobs?state=failed&limit=50&include=stack,attempts',
  '/v1/jobs?queue=%00',
  '/v1/jobs?task=%ED%A0%80',
];

/** What is in payloads, results and errors comes back in lists, whatever it is. */
export const attack: Attack = {
  kind: 'odd-texts',
  summary: 'NUL and halves of surrogate pairs in payloads, results, errors, progress and logs, then lists',
  mayBeRefusedForLoad: false,
  async run(scene, random) {
    const { leader } = scene;
    const worker = await WorkerByHand.register(scene, leader, { queues: ['odd-texts'], slots: SLOTS });
    if (!worker) return;
    await scene.inLanes(1, MAX_ROUNDS, async (round) => {
      const node = scene.someNode(random);
      const odd = (n: number) => ODD[(round + n) % ODD.length]!;
      const body = bulk(
        PER_ROUND,
        (n) =>
          `"task":"work","queue":"odd-texts","retry":{"maxAttempts":1},"payload":{"${odd(n)}":"${odd(n + 1)}"}`,
      );
      await scene.call(node, 'POST', '/v1/jobs/bulk', body, 'odd payloads');
      const jobs = await worker.claim(SLOTS, '1s');
      const results = jobs.map(({ jobId, fence }, n) => {
        const end =
          n % 4 === 3
            ? `"outcome":"succeeded","result":"${odd(n)}"`
            : `"outcome":"failed","error":{"message":"${odd(n)}","code":"${odd(n + 2)}","stack":"${odd(n + 3)}"}`;
        return `{"jobId":"${jobId}","fence":${fence},${end}}`;
      });
      const [first] = jobs;
      if (first) {
        const fence = `"fence":${first.fence}`;
        const post = (verb: string, text: string) =>
          scene.call(node, 'POST', `/v1/jobs/${first.jobId}/${verb}`, text, 'odd texts');
        await post('progress', `{${fence},"progress":0.5,"message":"${odd(0)}"}`);
        await post(
          'logs',
          `{${fence},"lines":[{"at":"2026-01-01T00:00:00Z","level":"info","message":"${odd(1)}"}]}`,
        );
      }
      await worker.call('report', `{"results":[${results.join(',')}]}`, 'odd results and errors');
      for (const { jobId } of jobs.slice(0, 4)) {
        const job = await scene.call(node, 'GET', `/v1/jobs/${jobId}`, undefined, 'a job with odd texts');
        if (!job) scene.wrong(`job ${jobId} cannot be read at ${node.name}`);
        await scene.call(node, 'GET', `/v1/jobs/${jobId}/logs`, undefined, 'odd logs');
      }
      for (const path of LISTS) await scene.call(node, 'GET', path, undefined, 'a list of odd texts');
      if (round % REDRIVE_EVERY === 0) {
        await scene.call(node, 'POST', '/v1/jobs/redrive', { queue: 'odd-texts' }, 'a redrive of odd texts');
      }
    });
    await worker.leave();
  },
};
