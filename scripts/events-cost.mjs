// Measures what events cost a leader, on the built program: node scripts/events-cost.mjs [events/s] [listeners] [seconds]
//
// A node with an embedded Postgres records starts of attempts at the given rate; the listeners are in another process. Told is
// the processor time of the node's process per second, without listeners and with them, and whether every event arrived.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const [rate = 10_000, listeners = 50, seconds = 5] = process.argv.slice(2).map(Number);
const STEP_MS = 10;

if (process.send) await listen();
else await measure();

/** The listeners: each counts the events that come. */
async function listen() {
  const [{ url, key }] = await once(process, 'message');
  const counts = Array(listeners).fill(0);
  let open = 0;
  for (let i = 0; i < listeners; i++) {
    const headers = { authorization: `Bearer ${key}` };
    request(`${url}/v1/events?type=job.*`, { headers, agent: false }, (response) => {
      let isNew = true;
      let rest = '';
      response.setEncoding('latin1').on('data', (piece) => {
        const lines = (rest + piece).split('\nevent: job');
        counts[i] += lines.length - 1;
        rest = lines.at(-1).slice(-10);
        if (isNew) {
          isNew = false;
          open += 1;
          if (open === listeners) process.send('open');
        }
      });
      response.on('error', () => undefined);
    }).end();
  }
  process.on('message', () => process.send(counts));
}

async function measure() {
  const data = await mkdtemp(join(tmpdir(), 'events-cost-'));
  const { startEmbeddedPostgres } = await import('../dist/embedded/embedded-postgres.js');
  const { resolveConfig } = await import('../dist/core/config.js');
  const { SILENT_LOG } = await import('../dist/core/log.js');
  const { startNode } = await import('../dist/node/start-node.js');
  const postgres = await startEmbeddedPostgres({ dataFolder: data });
  const { config } = resolveConfig({ databaseUrl: postgres.url, port: 0 }, {}, () => '');
  const node = await startNode({ config, log: SILENT_LOG });
  const readers = fork(fileURLToPath(import.meta.url), [rate, listeners, seconds].map(String));
  try {
    // Only the recorder is private; everything after it is as in a running cluster.
    const { state } = await node.context.shards[0].leader();
    const idle = await cost(state.events);
    readers.send({ url: node.url, key: node.localKey });
    await once(readers, 'message');
    const before = await cost(state.events, 0);
    const told = await cost(state.events);
    await sleep(1_000);
    readers.send('count');
    const [counts] = await once(readers, 'message');
    const least = Math.min(...counts);
    console.log(`${rate} events/s, ${listeners} listeners, ${seconds} s`);
    console.log(`nobody listens:    ${idle.ms.toFixed(1)} ms of processor time per second`);
    console.log(`nothing happens:   ${before.ms.toFixed(1)} ms`);
    console.log(
      `everybody is told: ${told.ms.toFixed(1)} ms, ${told.recording.toFixed(1)} ms of it to record`,
    );
    console.log(`recorded ${told.count} events; the listener with the fewest has heard ${least}`);
  } finally {
    readers.kill();
    await node.stop();
    await postgres.stop();
    await rm(data, { recursive: true, force: true });
  }
}

/** Records events at the rate for a while, as the hand-over does, in batches. */
async function cost(events, perSecond = rate) {
  const facts = { task: 'send', schedule: null };
  const id = '0198c4f2-5e1b-7000-8000-000000000000';
  const running = { id, tenant: 'default', queue: 1, fence: 1, worker: id, facts };
  const began = performance.now();
  const used = process.cpuUsage();
  let count = 0;
  let recording = 0;
  for (;;) {
    const elapsed = performance.now() - began;
    if (elapsed >= seconds * 1_000) break;
    const due = Math.floor((elapsed * perSecond) / 1_000) - count;
    const batch = Array(Math.max(0, due)).fill({ running });
    const at = performance.now();
    if (events.isHeard) events.started(batch);
    recording += performance.now() - at;
    count += batch.length;
    await sleep(STEP_MS);
  }
  const { user, system } = process.cpuUsage(used);
  const took = (performance.now() - began) / 1_000;
  return {
    ms: (user + system) / 1_000 / took,
    system: system / 1_000 / took,
    recording: recording / took,
    count,
  };
}
