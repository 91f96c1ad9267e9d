/**
 * The receiver of calls in a fault run. It writes every call to an append-only file before anything else happens, in the
 * form of the effects of handlers, and answers as the call itself or the harness tells it.
 */

import { appendFileSync } from 'node:fs';
import { request as ask, createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const { FAULT_EFFECTS, FAULT_REPORTS, FAULT_PORTS, FAULT_CONTROL } = process.env;
/** How much longer than told a slow receiver takes; longer than any call waits. */
const SLOW_MS = 4_000;
const REPORT_TIMEOUT_MS = 3_000;
const REPORT_PAUSE_MS = 200;

/** How all calls are treated for now: null, `hold`, `slow`, or one of the ways in which single calls fail. */
let mode = null;
/** Calls that the present mode has hit. */
let meddled = 0;
/** Reports that nobody has answered yet. */
let pending = 0;
/** The calls that are held, by what lets them go on. */
const held = new Map();

/** The machine's monotonic time in milliseconds, the clock of all observers. */
function monotonic() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

function record(kind, { job, n, fence, worker }, result = null) {
  const effect = { kind, job, n, fence, worker, tenant: 'default', at: monotonic(), result, from: null };
  appendFileSync(FAULT_EFFECTS, `${JSON.stringify(effect)}\n`);
}

async function receive(request, response) {
  const { headers, socket } = request;
  const reportTo = new URL(headers['punctual-url']);
  const call = {
    n: Number(request.url.split('/').at(-1)),
    job: headers['punctual-job-id'],
    fence: Number(headers['punctual-fence']),
    // Each worker has a public address of its own, so that a call tells who made it.
    worker: reportTo.searchParams.get('worker'),
  };
  // Written before the body is read: a call that breaks off has begun.
  record('start', call);
  const { workMs, failures, failing, handsOn } = await json(request);
  const isToFail = Number(headers['punctual-attempt']) <= failures;
  const told = mode;
  if (told !== null) meddled += 1;
  if (told === 'hold') await new Promise((resolve) => held.set(resolve, call.worker));
  if (told === 'slow') await sleep(SLOW_MS);
  const isMeddled = told !== null && told !== 'hold' && told !== 'slow';
  if (handsOn) {
    // Its answer may be lost, and it reports all the same.
    if (isMeddled) fail(told, call, response);
    else response.writeHead(202, { 'content-length': 0 }).end();
    await sleep(workMs);
    record('end', call, isToFail ? 'threw' : 'returned');
    await report(call, isToFail, reportTo, headers['punctual-token']);
    return;
  }
  if (workMs > 0) await sleep(workMs);
  if (isMeddled || isToFail) return fail(isMeddled ? told : failing, call, response);
  if (socket.destroyed) return record('end', call, 'stopped');
  record('end', call, 'returned');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ n: call.n, fence: call.fence }));
}

/** Treats a call so that its worker cannot take it for done. */
function fail(how, call, response) {
  record('end', call, 'threw');
  if (how === 'reset') response.socket?.resetAndDestroy();
  else if (how === 'error') response.writeHead(503).end();
  else if (how === 'busy') response.writeHead(429, { 'retry-after': '1' }).end();
  // Lost: the connection stands, and nothing comes.
}

/** Tells a node what became of a call that was handed on, until one answers. */
async function report({ job, fence, n }, isFailed, reportTo, token) {
  pending += 1;
  const path = `/v1/jobs/${job}/${isFailed ? 'fail' : 'complete'}`;
  const body = isFailed ? { fence, error: { message: 'was to fail' } } : { fence, result: { n, fence } };
  for (;;) {
    const answer = await post(new URL(path, reportTo), token, JSON.stringify(body)).catch(() => null);
    if (answer !== null && answer.status < 500) {
      const about = { job, fence, outcome: isFailed ? 'failed' : 'succeeded' };
      appendFileSync(FAULT_REPORTS, `${JSON.stringify({ ...about, ...answer, at: monotonic() })}\n`);
      break;
    }
    await sleep(REPORT_PAUSE_MS);
  }
  pending -= 1;
}

/** Each time on a connection of its own, which leads to another node than the last. */
function post(url, token, body) {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(REPORT_TIMEOUT_MS);
    const asked = ask(url, { method: 'POST', headers, agent: false, signal }, (incoming) => {
      const status = incoming.statusCode;
      if (status === 204) incoming.resume().on('end', () => resolve({ status, code: '' }));
      else json(incoming).then(({ code = '' }) => resolve({ status, code }), reject);
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** The harness changes the mode, or asks how things stand. */
async function control(request, response) {
  if (request.method === 'POST') {
    ({ mode } = await json(request));
    meddled = 0;
    for (const goOn of held.keys()) goOn();
    held.clear();
  }
  response.end(JSON.stringify({ meddled, pending, held: [...held.values()] }));
}

function listen(port, serve) {
  const server = createServer((request, response) => {
    // A caller that is gone is part of the plan.
    serve(request, response).catch(() => response.destroy());
  });
  return new Promise((resolve) => server.listen(Number(port), '127.0.0.1', resolve));
}

process.on('disconnect', () => process.exit());
await Promise.all([
  listen(FAULT_CONTROL, control),
  ...FAULT_PORTS.split(',').map((port) => listen(port, receive)),
]);
process.send({ type: 'ready' });
