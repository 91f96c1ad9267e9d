import type { Attack } from '../attack.js';
import { bulk, manyFields } from '../payloads.js';
import { WorkerByHand } from '../worker-by-hand.js';

const MAX_ROUNDS = 4;
const FIELDS = 125_000;
const ANYBODY = '00000000-0000-7000-8000-000000000000';

/** Fields that nobody knows, by the hundred thousand, wherever a body is taken. */
export const attack: Attack = {
  kind: 'many-fields',
  summary: 'bodies of a hundred thousand unknown fields',
  mayBeRefusedForLoad: false,
  async run(scene, random) {
    const fields = manyFields(FIELDS);
    const inner = fields.slice(1, -1);
    const few = manyFields(1_000).slice(1, -1);
    const worker = await WorkerByHand.register(scene, scene.leader, { queues: ['fields'] });
    const id = worker?.id ?? ANYBODY;
    const running = Array.from({ length: 500 }, () => `{"jobId":"${ANYBODY}","fence":1,${few}}`);
    const bodies: readonly (readonly [method: string, path: string, body: string])[] = [
      ['POST', '/v1/jobs', `{"task":"work",${inner}}`],
      ['POST', '/v1/jobs/bulk', bulk(900, () => `"task":"work",${few}`)],
      ['POST', '/v1/jobs/bulk', bulk(8, () => `"task":"work",${inner}`)],
      ['POST', `/v1/workers/${id}/heartbeat`, `{"epoch":1,"running":[${running.join(',')}]}`],
      ['POST', `/v1/workers/${id}/report`, `{"results":[${running.join(',')}]}`],
      ['POST', `/v1/workers/${id}/claim`, `{"max":1,"wait":"0s",${inner}}`],
      ['PATCH', '/v1/queues/fields', `{"rate":{"limit":1,"per":"1s",${inner}}}`],
      ['PATCH', '/v1/tenants/attacker', `{"rate":${fields}}`],
      ['POST', '/v1/tenants', fields],
      ['POST', '/v1/workers', fields],
      ['POST', '/v1/schedules', fields],
      ['POST', '/v1/jobs/redrive', fields],
    ];
    await scene.inLanes(2, MAX_ROUNDS * bodies.length, async (n) => {
      const [method, path, body] = bodies[n % bodies.length]!;
      await scene.send(scene.someNode(random), { about: 'unknown fields', method, path, body });
    });
  },
};
