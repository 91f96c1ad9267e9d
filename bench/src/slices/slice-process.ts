import { Ledger } from '../ledger.js';
import { now } from '../moments.js';
import { openBareCalls } from '../systems/bare-calls.js';
import { openBullMq } from '../systems/bullmq.js';
import { openGraphileWorker } from '../systems/graphile-worker.js';
import { openPgBoss } from '../systems/pg-boss.js';
import { openPunctual } from '../systems/punctual.js';
import { openPunctualHeard } from '../systems/punctual-heard.js';
import { openPunctualHttp } from '../systems/punctual-http.js';
import { openPunctualWire } from '../systems/punctual-wire.js';
import type { Surroundings, System } from '../systems/system.js';
import { measureCalls } from './calls.js';
import { Lateness, measureHerd, measurePunctuality } from './due.js';
import { GroupStarts, groupSize, measureGraphs, takesGraphs } from './graphs.js';
import { measureHeard } from './heard.js';
import { measureLatency } from './latency.js';
import type { SliceMessage, SliceOrder, SliceResult, SystemName } from './slice.js';
import { measureThroughput } from './throughput.js';

/**
 * The process of one slice: one system, one measurement, then the end. Every slice has a fresh one, so that no
 * system profits or suffers from what another has left in memory.
 */

const OPEN: Record<
  Exclude<SystemName, `punctual-${'wire' | 'heard' | 'http'}` | `bare-calls${'' | '-like-ours'}`>,
  (surroundings: Surroundings) => Promise<System>
> = {
  punctual: openPunctual,
  'graphile-worker': openGraphileWorker,
  'pg-boss': openPgBoss,
  bullmq: openBullMq,
};

function send(message: SliceMessage): Promise<void> {
  return new Promise((resolve) => process.send!(message, () => resolve()));
}

const progress = (text: string): void => void send({ type: 'progress', text });

async function measure(order: SliceOrder): Promise<SliceResult> {
  const { system: name, url, folder, task, profileFolder, quotas } = order;
  if (name === 'punctual-wire') {
    if (task.kind !== 'throughput') throw new Error(`The wire is not measured for ${task.kind}.`);
    const { system, starts } = await openPunctualWire({ url, folder, profileFolder, quotas });
    return endingWith(system, () => measureThroughput(system, starts, task.load, progress));
  }
  if (name === 'bare-calls' || name === 'bare-calls-like-ours' || name === 'punctual-http') {
    return measureCalling(order);
  }
  const ledger = new Ledger();
  if (name === 'punctual-heard') {
    if (task.kind !== 'heard') throw new Error(`Listeners are not measured for ${task.kind}.`);
    const watched = new Ledger();
    const heard = await openPunctualHeard({
      ...{ url, folder, listening: task.listening },
      onStart: (number) => ledger.start(number),
      onWatchedStart: (number) => watched.start(number),
    });
    return endingWith(heard.system, () => measureHeard(heard, ledger, watched, task, progress));
  }
  switch (task.kind) {
    case 'heard':
    case 'calls':
      throw new Error(`${name} is not measured for ${task.kind}.`);
    case 'throughput': {
      const onStart = (number: number) => ledger.start(number);
      const system = await OPEN[name]({ url, folder, quotas, purpose: 'throughput', onStart });
      return endingWith(system, () => measureThroughput(system, ledger, task.load, progress));
    }
    case 'latency': {
      const startedAt: number[] = [];
      const onStart = (number: number) => {
        startedAt[number] = now();
        ledger.start(number);
      };
      const system = await OPEN[name]({ url, folder, quotas, purpose: 'latency', onStart });
      return endingWith(system, () => measureLatency(system, ledger, startedAt, task, progress));
    }
    case 'graphs': {
      const starts = new GroupStarts(ledger, groupSize(task));
      const onStart = (number: number) => starts.start(number);
      const system = takesGraphs(await OPEN[name]({ url, folder, quotas, purpose: 'throughput', onStart }));
      return endingWith(system, () => measureGraphs(system, ledger, starts, task, progress));
    }
    case 'punctuality':
    case 'herd': {
      const lateness = new Lateness(ledger);
      const onStart = (number: number) => lateness.start(number);
      const system = await openPunctual({ url, folder, quotas, purpose: 'throughput', onStart });
      return endingWith(system, () =>
        task.kind === 'herd'
          ? measureHerd(system, lateness, task, progress)
          : measurePunctuality(system, lateness, task, progress),
      );
    }
  }
}

async function measureCalling({
  system: name,
  url,
  folder,
  task,
  profileFolder,
}: SliceOrder): Promise<SliceResult> {
  if (name === 'punctual-http' && task.kind === 'calls') {
    const { system, receiver } = await openPunctualHttp({ url, folder, profileFolder });
    return endingWith(system, () => measureCalls(system, receiver, task, progress));
  }
  if (task.kind !== 'throughput') throw new Error(`${name} is not measured for ${task.kind}.`);
  const { system, receiver } = await (name === 'punctual-http'
    ? openPunctualHttp({ url, folder, profileFolder })
    : openBareCalls({ likeOurs: name === 'bare-calls-like-ours' }));
  return endingWith(system, () => measureThroughput(system, receiver.starts, task.load, progress));
}

async function endingWith<T>(system: System, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await system.close();
  }
}

// Ctrl-C reaches every process of the terminal; the one that started this decides when it ends.
process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit(1));
process.once('message', (order: SliceOrder) => {
  measure(order).then(
    async (result) => {
      await send({ type: 'result', result });
      process.exit(0);
    },
    async (error: Error) => {
      await send({ type: 'failed', message: error.stack ?? String(error) });
      process.exit(1);
    },
  );
});
