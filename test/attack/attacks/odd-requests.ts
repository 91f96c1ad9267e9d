import type { Attack } from '../attack.js';
import type { Shot } from '../sender.js';

const ANYBODY = '00000000-0000-7000-8000-000000000000';
const MAX_ROUNDS = 10;

/** Small requests that each once did more than they may: ended a term, sent a request astray, lost what was said. */
export const attack: Attack = {
  kind: 'odd-requests',
  summary: 'small requests with large consequences: future epochs, borrowed headers, numbers out of reach',
  mayBeRefusedForLoad: false,
  async run(scene, random) {
    const post = (path: string, body: string, about: string, headers = {}): Shot => ({
      ...{ method: 'POST', path, body, about, headers: { ...scene.headers, ...headers } },
    });
    const registration = `"name":"odd","queues":["odd"],"slots":1,"targets":["handler"],"tasks":[],"labels":{}`;
    const shots: readonly Shot[] = [
      ...[2, 1_000_000, Number.MAX_SAFE_INTEGER].map((epoch) =>
        post(
          `/v1/workers/${ANYBODY}/heartbeat`,
          `{"epoch":${epoch},"running":[]}`,
          `a stranger's heartbeat under epoch ${epoch}`,
        ),
      ),
      ...['1', 'node-1', ANYBODY].map((value) =>
        post('/v1/workers', `{${registration}}`, `a forwarded header of ${value}`, {
          'punctual-forwarded': value,
        }),
      ),
      post('/v1/jobs', '{"task":"odd","payload":1e999}', 'a number beyond all doubles'),
      post(
        '/v1/jobs',
        '{"task":"odd","payload":[123456789012345678901234567890]}',
        'a whole number beyond 2⁵³',
      ),
      post('/v1/jobs', '{"task":"odd","delay":"999999999999999d"}', 'a delay of ages'),
      post('/v1/jobs', '{"task":"odd","runAt":"9999-12-31T23:59:59.999Z"}', 'a job at the end of time'),
      post('/v1/jobs', '{"task":"odd","startBefore":"0001-01-01T00:00:00Z"}', 'a job that expired long ago'),
      post('/v1/jobs/redrive', '{"task":"nobody-has-this"}', 'a redrive of nothing'),
      post(`/v1/workers/${ANYBODY}/report`, '{"results":[]}', "a stranger's empty report"),
      { about: 'verbose readiness', method: 'GET', path: '/readyz?verbose', headers: {} },
    ];
    await scene.inLanes(2, MAX_ROUNDS * shots.length, async (n) => {
      await scene.send(scene.someNode(random), shots[n % shots.length]!);
    });
  },
};
