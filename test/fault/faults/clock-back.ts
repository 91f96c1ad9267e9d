import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../fault.js';
import { monotonic } from '../monotonic.js';
import { setClockBack } from '../rig/database-clock.js';

const MINUTE_MS = 60_000;
const LIMITED = { queue: 'limited', perSecond: 30, burst: 3 };
/** As long as the clock is wrong, and some more: the queue must not run dry meanwhile. */
const WORK_SECONDS = 9;
const DRAINED_WITHIN_MS = 10_000;

/** The database's clock is set back by minutes while a queue with a rate is in use, and right again a while later. */
export const fault: Fault = {
  kind: 'clock-back',
  scenario: 'clock-back',
  lane: 'database',
  async inject(scene, random) {
    const { postgres } = scene.rig;
    const { queue, perSecond, burst } = LIMITED;
    await scene.client.insist('PATCH', `/v1/queues/${queue}`, {
      rate: { limit: perSecond, per: '1s', burst },
    });
    const wishes = Array.from({ length: WORK_SECONDS * perSecond }, () => ({ queue }));
    const { orders } = await scene.load.order(wishes);
    await scene.unstarted(orders.slice(0, 1), 10_000);
    const byMs = random.between(2 * MINUTE_MS, 10 * MINUTE_MS);
    const from = monotonic();
    try {
      await setClockBack(postgres, byMs);
      // The observer's own session looks again like all others when it is asked the next thing.
      const seen = await scene.until(
        async () => Math.abs((await wrongBy(scene.database)) + byMs) < 5_000,
        3_000,
      );
      await sleep(random.between(4_500, 6_000));
      const to = monotonic();
      const detail = `the database's clock was set back by ${Math.round(byMs / 1_000)} s`;
      const clockBack = { ...LIMITED, from, to };
      return { targets: ['postgres'], effective: seen, detail, clockBack };
    } finally {
      await setClockBack(postgres, 0);
      // The next fault of this kind needs a queue without a backlog.
      await scene.unstarted(orders, DRAINED_WITHIN_MS);
    }
  },
};

/** How far the database's clock is ahead of this machine's. */
async function wrongBy(database: { query<R>(text: string): Promise<R[]> }): Promise<number> {
  const rows = await database.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 AS now',
  );
  return rows[0]!.now * 1_000 - Date.now();
}
