import type { Attack } from '../attack.js';
import { BadRequests } from '../generated/bad-request.js';
import { ApiDocument } from '../generated/document.js';
import { Sampler } from '../generated/sample.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_REQUESTS = 20_000;

/** Bad requests to every route, made from the OpenAPI document. */
export const attack: Attack = {
  kind: 'bad-requests',
  summary: 'bad requests to every route, generated from docs/openapi.json',
  mayBeRefusedForLoad: false,
  async run(scene, random) {
    const job = await scene.call<{ id: string }>(scene.leader, 'POST', '/v1/jobs', {
      ...{ task: 'work', delay: '1d' },
    });
    const worker = await WorkerByHand.register(scene, scene.leader, { queues: ['nothing'] });
    if (!job || !worker) return;
    const document = ApiDocument.read();
    const sampler = new Sampler(document, { job: job.id, worker: worker.id }, random.branch());
    const requests = new BadRequests(document.operations, sampler, random.branch(), scene.headers);
    const where = random.branch();
    // A request is drawn when it is sent, always from the same stream, so that a seed gives the same ones.
    await scene.inLanes(6, MAX_REQUESTS, (n) => scene.send(scene.someNode(where), requests.next(n)));
  },
};
