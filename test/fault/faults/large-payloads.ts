import type { Fault } from '../fault.js';
import type { Order } from '../history.js';
import { toSubmission } from '../observers/client.js';
import type { Scene } from '../scene.js';

/** As much as a payload may weigh by default, less the few fields beside it. */
const BYTES = 256 * 1_024 - 512;
/** All of it crosses the proxies, which are one thread: in a mixed run more would slow down everything, not the nodes. */
const IN_BULK = 30;
const BULKS = 1;
const SINGLY = 10;
const IN_TRANSACTION = 60;
const ENDED_WITHIN_MS = 60_000;
/** A queue of their own: others have their turns beside it. */
const LARGE: Partial<Order> = { queue: 'large', bytes: BYTES };

/** Clients send the largest jobs there may be in every way there is, and each has a result of the same size. */
export const fault: Fault = {
  kind: 'large-payloads',
  scenario: 'large-payloads',
  lane: 'load',
  async inject(scene) {
    const submissions = await Promise.all([
      ...Array.from({ length: BULKS }, () => scene.load.order(large(IN_BULK))),
      ...Array.from({ length: SINGLY }, () => scene.load.order(large(1), { singly: true })),
      inTransaction(scene, large(IN_TRANSACTION)),
    ]);
    const orders = submissions.flatMap(({ outcome, orders }) => (outcome === 'ok' ? orders : []));
    const left = await scene.unstarted(orders, ENDED_WITHIN_MS);
    const detail = `${orders.length} jobs of ${BYTES} bytes were taken, ${left} of them did not start`;
    // Nothing is broken: nobody may be late because of it, and no leader may fall.
    return { targets: [], effective: orders.length > 0, detail, broken: null };
  },
};

function large(count: number): Partial<Order>[] {
  return Array.from({ length: count }, () => LARGE);
}

/** Submits inside a transaction of the client's own, as users do whose database this is. */
async function inTransaction(scene: Scene, wishes: readonly Partial<Order>[]) {
  const orders = scene.load.make(wishes);
  return scene.client.note(orders, async () => {
    const client = await scene.rig.postgres.connect();
    try {
      const ids: string[] = [];
      await client.query('BEGIN');
      for (const order of orders) {
        const values = [order.tenant, JSON.stringify(toSubmission(order))];
        const { rows } = await client.query('SELECT punctual.submit_job($1, $2) AS id', values);
        ids.push((rows[0] as { id: string }).id);
      }
      await client.query('COMMIT');
      return ids;
    } finally {
      await client.end().catch(() => undefined);
    }
  });
}
