import pg from 'pg';
import { loadPartitions } from './product.js';

/**
 * Millions of ended jobs, as if they had run in the days before now. They are inserted by SQL, because running them would take
 * hours; the tables, partitions and indexes are those of the product.
 */

/** The tenants with history; the first has more than half of it, and the others the rest in equal parts. */
export const TENANTS = ['large', ...Array.from({ length: 10 }, (_, i) => `small-${i + 1}`)] as const;
export const QUEUES = ['default', 'mail', 'reports', 'billing', 'import'] as const;
export const ERROR_CODES = ['TIMEOUT', 'CONNECTION_REFUSED', 'NO_SUCH_CUSTOMER', 'HTTP_502'] as const;
export const TASKS = 50;
/** A task of one job in a hundred thousand. */
export const RARE_TASK = 'rare';
export const SCHEDULES = 100;
export const CUSTOMERS = 5_000;
export const WORKERS = Array.from(
  { length: 20 },
  (_, i) => `01890a5d-ac96-774b-bcce-${(i + 1).toString(16).padStart(12, '0')}`,
);

export const DAYS = 10;
const DAY_MS = 86_400_000;
/** Rows per statement, so that progress can be told and an interruption be heard. */
const PORTION = 100_000;
/** One for each processor: generating a row costs as much as storing it. */
const CLIENTS = 2;

/** A number from 0 below the limit that depends on the row alone, another one for each salt. */
const random = (salt: number, limit: number) => `(hashint8extended(n, ${salt}) & 1073741823) % ${limit}`;

/** $1 and $2: the first and the last row; $3 and $4: the moment of the first row, and milliseconds from one to the next. */
const FILL = `
  WITH generated AS (
    SELECT n, ($3::bigint + n * $4::float8)::bigint AS ms, md5(n::text) AS hex, ${random(1, 100)} AS of_tenant,
      ${random(2, QUEUES.length)} AS of_queue, ${random(3, 1_000)} AS of_state, ${random(4, TASKS)} AS of_task,
      ${random(5, 10)} = 0 AS has_key, ${random(6, 20)} = 0 AS is_scheduled, ${random(7, SCHEDULES)} AS of_schedule,
      ${random(8, CUSTOMERS)} AS customer, ${random(9, 25)} = 0 AS was_repeated, ${random(10, 2_000)} AS took,
      ${random(11, WORKERS.length)} AS of_worker, ${random(12, ERROR_CODES.length)} AS of_code
    FROM generate_series($1::bigint, $2::bigint) n
  ), placed AS (
    SELECT *, CASE WHEN of_tenant < 60 THEN 1 ELSE 2 + (of_tenant - 60) / 4 END AS tenant_number,
      CASE WHEN of_state < 10 THEN 'failed' WHEN of_state < 15 THEN 'cancelled' WHEN of_state < 17 THEN 'skipped'
        ELSE 'succeeded' END AS state,
      ($7::uuid[])[1 + of_worker] AS worker
    FROM generated
  ), stored AS (
    INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, attempts, failures, losses, max_attempts,
      max_losses, at_most_once, timeout_ms, created_at, late_by, task, created_by, key, payload, earlier_attempts, schedule,
      occurrence, state, finished_at, fence, worker, epoch, claimed_at, started_at, outcome, result, error)
    SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(hex, 1, 3) || '8' || substr(hex, 4, 15))::uuid,
      ($5::text[])[tenant_number], ($6::int[])[(tenant_number - 1) * ${QUEUES.length} + of_queue + 1], $9::int, 5, ms,
      1 + was_repeated::int, was_repeated::int + (state = 'failed')::int, 0, 4, 3, false, 60000, ms, 2,
      CASE WHEN n % 100000 = 77 THEN '${RARE_TASK}' ELSE 'task-' || of_task END, 'key:shop',
      CASE WHEN has_key THEN 'order-' || n END,
      json_build_object('customer', customer, 'order', n, 'items', json_build_array(n % 7, n % 11), 'note', hex),
      CASE WHEN was_repeated THEN ARRAY[json_build_object('fence', 1, 'epoch', 3, 'worker', worker, 'claimedAt', ms + 1,
        'startedAt', ms + 2, 'finishedAt', ms + 10, 'outcome', 'failed',
        'error', json_build_object('message', 'the first try failed', 'code', 'TIMEOUT'))] END,
      CASE WHEN is_scheduled THEN 'report-' || of_schedule END, CASE WHEN is_scheduled THEN ms END,
      state, ms + 20 + took, 1 + was_repeated::int, worker, 3, ms + 11, ms + 12,
      CASE WHEN state IN ('succeeded', 'failed') THEN state END,
      CASE WHEN state = 'succeeded' THEN json_build_object('ok', true, 'took', took) END,
      CASE WHEN state = 'failed' THEN json_build_object('message', 'order ' || n || ' could not be shipped',
        'code', ($8::text[])[1 + of_code], 'stack', repeat('    at ship (orders.js:10:5)' || chr(10), 6)) END
    FROM placed
    RETURNING tenant, key, id
  )
  INSERT INTO punctual.keys (tenant, key, job) SELECT tenant, key, id FROM stored WHERE key IS NOT NULL`;

const QUEUE_IDS = `
  SELECT array_agg(q.id ORDER BY t.number, w.number) AS ids
  FROM unnest($1::text[]) WITH ORDINALITY t(tenant, number) CROSS JOIN unnest($2::text[]) WITH ORDINALITY w(name, number)
  JOIN punctual.queues q ON q.tenant = t.tenant AND q.name = w.name`;

const PARTITIONS = `
  SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'punctual.job_history'::regclass`;

interface FillOptions {
  readonly rows: number;
  /** The moment of the last job. */
  readonly until: number;
  readonly signal: AbortSignal;
  readonly progress: (text: string) => void;
}

/** Fills history. All tenants must have a job in all queues already, from which the ids of queues and needs are taken. */
export async function fillHistory(url: string, options: FillOptions): Promise<void> {
  const { rows, until, signal, progress } = options;
  const from = until - DAYS * DAY_MS;
  const clients = Array.from({ length: CLIENTS }, () => new pg.Client({ connectionString: url }));
  try {
    for (const client of clients) await client.connect();
    await makeDays(clients[0]!, from, until);
    const ids = await clients[0]!.query<{ ids: number[] }>(QUEUE_IDS, [TENANTS, QUEUES]);
    const needs = await clients[0]!.query<{ id: number }>('SELECT min(needs) AS id FROM punctual.later');
    const fixed = [from, (DAYS * DAY_MS) / rows, TENANTS, ids.rows[0]!.ids, WORKERS, ERROR_CODES];
    let next = 1;
    await allAtOnce(clients, async (client) => {
      if (next > rows) return false;
      signal.throwIfAborted();
      const first = next;
      next = Math.min(first + PORTION, rows + 1);
      await client.query(FILL, [first, next - 1, ...fixed, needs.rows[0]!.id]);
      progress(`storing ended jobs: ${(next - 1).toLocaleString('en')}`);
      return true;
    });
    const { rows: days } = await clients[0]!.query<{ name: string }>(PARTITIONS);
    const tables = [...days.map(({ name }) => name), 'punctual.keys'];
    await allAtOnce(clients, async (client) => {
      const table = tables.pop();
      if (table === undefined) return false;
      progress(`vacuum, as autovacuum does in days: ${tables.length} tables to go`);
      await client.query(`VACUUM (ANALYZE) ${table}`);
      return true;
    });
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

async function makeDays(client: pg.Client, from: number, until: number): Promise<void> {
  const { makePartition } = await loadPartitions();
  for (let day = from; day < until + DAY_MS; day += DAY_MS) await makePartition(client, 'job_history', day);
}

/** Lets every client do pieces of work until there is no more. */
async function allAtOnce(
  clients: readonly pg.Client[],
  work: (client: pg.Client) => Promise<boolean>,
): Promise<void> {
  await Promise.all(
    clients.map(async (client) => {
      while (await work(client));
    }),
  );
}
