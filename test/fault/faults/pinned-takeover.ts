import type pg from 'pg';
import type { Fault } from '../fault.js';
import { monotonic } from '../monotonic.js';

/** How many dead rows nobody can clear away while the horizon is pinned. */
const DEAD_ROWS = 200_000;
/** The issue of it is how long nobody starts anything; the bench measures the same with far more rows. */
const WITHIN_MS = 3_000;

/** Somebody's idle transaction keeps every dead row in place, jobs come and go, and then the leader is killed. */
export const fault: Fault = {
  kind: 'pinned-takeover',
  scenario: 'pinned-takeover',
  lane: 'nodes',
  async inject(scene) {
    let pin: pg.Client | undefined;
    let pinned = true;
    try {
      pin = await scene.rig.postgres.connect();
      pin.on('end', () => {
        pinned = false;
      });
      await pin.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await pin.query('SELECT count(*) FROM punctual.leases');
      const client = await scene.rig.postgres.connect();
      const begin = monotonic();
      const dead = await leaveDeadRows(client).finally(() => client.end());
      const { node, epoch } = await scene.leader();
      const at = await node.member.kill();
      const took = await scene.until(
        async () => (await scene.database.claimsAfter(epoch)) > 0,
        scene.settings.leaseTtlMs * 3 + WITHIN_MS,
      );
      const gapMs = Math.round(monotonic() - at);
      const effective = pinned && dead > 0;
      await node.start();
      const detail = `${dead} dead rows, pinned for ${Math.round(monotonic() - begin)} ms; ${took ? `a claim after ${gapMs} ms` : `no claim in ${gapMs} ms`}`;
      const leaderGone = { epoch, at, withinMs: scene.settings.leaseTtlMs + WITHIN_MS };
      return {
        ...{ targets: [node.member.name], effective, detail, leaderGone },
        broken: { from: at, to: monotonic() },
      };
    } catch (error) {
      // The server may have been taken away by another fault.
      return { targets: [], effective: false, detail: String(error) };
    } finally {
      await pin?.end().catch(() => undefined);
    }
  },
};

/**
 * Leaves rows behind as hours of work would, in front of every job that waits in the queue of the load: they are written
 * and removed in one transaction, so that nobody ever sees them. Answers with their number.
 */
async function leaveDeadRows(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ column: string }>(
    `SELECT quote_ident(attname) AS "column" FROM pg_attribute
     WHERE attrelid = 'punctual.jobs'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'id'`,
  );
  const columns = rows.map(({ column }) => column).join(', ');
  await client.query(`CREATE TEMP TABLE example AS
    SELECT ${columns} FROM punctual.jobs WHERE queue = (
      SELECT id FROM punctual.queues WHERE tenant = 'default' AND name = 'default')
    LIMIT 1`);
  await client.query('BEGIN');
  const { rowCount } = await client.query(`INSERT INTO punctual.jobs (id, ${columns})
    SELECT gen_random_uuid(), ${columns} FROM example, generate_series(1, ${DEAD_ROWS})`);
  await client.query(
    `DELETE FROM punctual.jobs j USING (SELECT pg_current_xact_id()::xid AS own) x WHERE j.xmin = x.own`,
  );
  await client.query('COMMIT');
  return rowCount ?? 0;
}
