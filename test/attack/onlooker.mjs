/**
 * The process that watches an attack, apart from the one that attacks, whose own thread is held by what it builds. It
 * is the calm client, looks at the nodes' metrics and processes, and by the lateness of its own timers it shows
 * what the machine does to a process that has next to nothing to do. It tells its parent what it saw.
 */

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';

const { nodes, apiKey, maxHoldMs, machineEveryMs } = JSON.parse(process.env.ATTACK_ONLOOKER);

const CONTROL_EVERY_MS = 10;
/** Below this a late timer is no news. */
const CONTROL_WORTH_MS = 5;
const LOOP_EVERY_MS = 250;
const JOB_EVERY_MS = 50;
const LIVEZ_EVERY_MS = 100;
const LIST_EVERY_MS = 200;
const TELL_EVERY_MS = 250;
/** A calm client that is not served does not become a crowd. */
const MAX_OPEN = 100;
const PATIENCE_MS = 20_000;
const PAGE_BYTES = 4_096;
const TICK_MS = 10;
const STOLEN = 8;

const agent = new Agent({ connections: 2 * MAX_OPEN, connect: { timeout: 5_000 } });
const seen = { calm: [], holds: [], machine: [], control: [] };
let stopped = false;
let open = 0;

function monotonic() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

async function ask(node, method, path, body) {
  const answer = await request(new URL(path, node.url), {
    method,
    headers: { authorization: `Bearer ${apiKey}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    dispatcher: agent,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 400) throw new Error(`${answer.statusCode} ${text.slice(0, 200)}`);
  return text;
}

/** Does something again and again until the end, without waiting for what it began. */
async function every(ms, begin) {
  for (let n = 0; !stopped; n += 1) {
    const next = monotonic() + ms;
    void begin(n);
    await sleep(Math.max(0, next - monotonic()));
  }
}

/** Notes how one wish of the calm client was met. */
async function wish(what, node, fulfil) {
  if (open >= MAX_OPEN) return;
  open += 1;
  const from = monotonic();
  let error = null;
  try {
    await fulfil();
  } catch (failure) {
    error = failure.message || failure.code || String(failure);
  }
  open -= 1;
  seen.calm.push({ what, node: node.name, from, to: monotonic(), error });
}

async function jobTo(node, n) {
  const payload = { n, workMs: 0, failures: 0, blocking: false };
  const { id } = JSON.parse(await ask(node, 'POST', '/v1/jobs', { task: 'effect', payload }));
  const job = JSON.parse(await ask(node, 'GET', `/v1/jobs/${id}?wait=15s`));
  if (job.state !== 'succeeded') throw new Error(`the job is ${job.state}`);
}

const turn = (n) => nodes[n % nodes.length];

function beCalm() {
  return Promise.all([
    every(JOB_EVERY_MS, (n) => wish('job', turn(n), () => jobTo(turn(n), n))),
    every(LIVEZ_EVERY_MS, (n) => wish('livez', turn(n), () => ask(turn(n), 'GET', '/livez'))),
    every(LIST_EVERY_MS, (n) => wish('list', turn(n), () => ask(turn(n), 'GET', '/v1/jobs?limit=5'))),
  ]);
}

const BUCKET = /^punctual_event_loop_delay_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm;

/** The counts of the buckets above the allowed hold, by their lower bounds in milliseconds. */
function longHolds(metrics) {
  const counts = new Map();
  let [lowerMs, below] = [0, 0];
  for (const [, le, cumulative] of metrics.matchAll(BUCKET)) {
    if (lowerMs >= maxHoldMs) counts.set(lowerMs, Number(cumulative) - below);
    [lowerMs, below] = [Math.round(Number(le) * 1_000), Number(cumulative)];
  }
  return counts;
}

async function watchLoop(node) {
  let before = new Map();
  let from = null;
  while (!stopped) {
    const asked = monotonic();
    try {
      const counts = longHolds(await ask(node, 'GET', '/metrics'));
      const to = monotonic();
      // The first look only tells what had been before.
      if (from !== null) {
        const held = [...counts]
          .map(([atLeastMs, count]) => ({ atLeastMs, times: count - (before.get(atLeastMs) ?? 0) }))
          .filter(({ times }) => times > 0);
        seen.holds.push({ node: node.name, from, to, held });
      }
      before = counts;
      from = asked;
    } catch {
      // A node that does not answer is seen by the calm client; what it counts is read at the next look.
    }
    await sleep(LOOP_EVERY_MS);
  }
}

/** One figure of a file of the kernel; 0 where there is none. */
function figure(file, read) {
  try {
    return read(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

async function watchMachine() {
  while (!stopped) {
    const stolen = figure('/proc/stat', (text) => Number(text.split('\n')[0].split(/ +/)[STOLEN]));
    const processes = nodes.map(({ name, pid }) => {
      const pages = figure(`/proc/${pid}/statm`, (text) => Number(text.split(' ')[1]));
      const waitedNs = figure(`/proc/${pid}/schedstat`, (text) => Number(text.split(' ')[1]));
      return [name, { rssMb: (pages * PAGE_BYTES) / 2 ** 20, waitedMs: waitedNs / 1e6 }];
    });
    seen.machine.push({
      at: monotonic(),
      stolenMs: stolen * TICK_MS,
      nodes: Object.fromEntries(processes),
    });
    await sleep(machineEveryMs);
  }
}

async function watchMyself() {
  while (!stopped) {
    const expected = monotonic() + CONTROL_EVERY_MS;
    await sleep(CONTROL_EVERY_MS);
    const delayMs = monotonic() - expected;
    if (delayMs > CONTROL_WORTH_MS) seen.control.push({ at: monotonic(), delayMs });
  }
}

function tell() {
  process.send(seen);
  for (const kind of Object.keys(seen)) seen[kind] = [];
}

process.on('disconnect', () => process.exit());
process.on('message', () => {
  stopped = true;
});

void every(TELL_EVERY_MS, tell);
await Promise.all([beCalm(), ...nodes.map(watchLoop), watchMachine(), watchMyself()]);
// What the calm client still waits for belongs to what was seen.
const deadline = monotonic() + PATIENCE_MS;
while (open > 0 && monotonic() < deadline) await sleep(20);
tell();
process.send({ done: true }, () => process.exit());
