import { Agent, get } from 'node:http';
import pg from 'pg';
import { tenantKey } from '../access.js';
import { Cluster } from '../cluster.js';
import { DAYS, fillHistory, QUEUES, TENANTS } from '../history.js';
import { type Draw, LIST_REQUESTS, type ListRequest, type SampleJob } from '../list-requests.js';
import { now } from '../moments.js';
import { loadSdk, productVersion } from '../product.js';
import { atMost, type ScenarioResult, type SystemResult, type Target } from '../result.js';
import { environmentOf, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { spread } from '../statistics.js';

const ROWS = 10_000_000;
const TARGET_MS = 50;
/** Jobs that wait, of another tenant than those who ask, and newer than all of theirs. */
const CROWD = 20_000;
/** Jobs that wait of each tenant with history. */
const WAITING = 100;
/** Requests of one kind in a row, before the next kind has its turn. */
const BURST = 5;
const MOST_SAMPLES = 500;
const SAMPLE_JOBS = 1_000;

/** Who asks: an operator for the tenant with the most jobs, and another tenant for itself. */
const CALLERS = [
  { name: 'operator', tenant: TENANTS[0] },
  { name: 'tenant', tenant: TENANTS[3]! },
] as const;

export const lists: Scenario = {
  name: 'lists',
  title: 'Gets, lists and filters beside 10 million ended jobs',
  secondsMean: 'seconds for each kind of request and caller, or until there are 500 samples',
  defaultSeconds: 3,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(context, (postgres) =>
      postgres.withDatabase('bench', async (url) => {
        const environment = environmentOf(postgres);
        const kinds = await Cluster.with(url, 1, (cluster) => measure(cluster, context));
        return describe(context, kinds, environment);
      }),
    ),
};

/** A kind of request by one caller, and how long its answers took. */
class Kind {
  readonly times: number[] = [];
  spentMs = 0;
  jobs = 0;
  path = '';

  constructor(
    readonly caller: (typeof CALLERS)[number],
    readonly request: ListRequest,
  ) {}

  get name(): string {
    return `${this.request.name} (${this.caller.name})`;
  }
}

async function measure(cluster: Cluster, context: Context): Promise<readonly Kind[]> {
  const { apiKey } = cluster;
  const url = cluster.urls[0]!;
  const { connect } = await loadSdk();
  await inEveryTenant(async (tenant) => {
    const punctual = connect({ url, apiKey, tenant });
    for (const queue of QUEUES) await punctual.submit('nobody', undefined, { queue, hold: true });
    await punctual.close();
  });
  const began = now();
  await fillHistory(cluster.databaseUrl, {
    ...{ rows: ROWS, until: Date.now() - 1_000, signal: context.signal },
    progress: (text) => context.progress.tell(text),
  });
  context.progress.say(
    `  ${ROWS.toLocaleString('en')} jobs stored in ${Math.round((now() - began) / 1_000)} s`,
  );
  const submitWaiting = async (tenant: string, count: number) => {
    const punctual = connect({ url, apiKey, tenant });
    await punctual.submitMany(
      'nobody',
      Array.from({ length: count }, (_, n) => ({ n })),
    );
    await punctual.close();
  };
  await inEveryTenant((tenant) => submitWaiting(tenant, WAITING));
  await submitWaiting('crowd', CROWD);
  const keys = {
    operator: apiKey,
    tenant: await tenantKey(url, apiKey, CALLERS[1].tenant),
  };
  const kinds: Kind[] = [];
  const draws = new Map<string, Draw>();
  for (const caller of CALLERS) {
    draws.set(caller.tenant, drawing(await sampleJobs(cluster.databaseUrl, caller.tenant)));
    kinds.push(...LIST_REQUESTS.map((request) => new Kind(caller, request)));
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (kind: Kind): Promise<number> => {
    kind.path = kind.request.path(draws.get(kind.caller.tenant)!);
    const begin = now();
    const headers = {
      authorization: `Bearer ${keys[kind.caller.name]}`,
      // A tenant's key acts for its own tenant.
      ...(kind.caller.name === 'operator' && { 'punctual-tenant': kind.caller.tenant }),
    };
    const answer = await read(url + kind.path, headers, agent);
    const took = now() - begin;
    kind.jobs = (JSON.parse(answer) as { data?: unknown[] }).data?.length ?? 1;
    return took;
  };
  // The first answers of a process are slower than all others.
  for (const kind of kinds) for (let i = 0; i < BURST; i++) await ask(kind);
  const isDone = ({ spentMs, times }: Kind) =>
    spentMs >= context.seconds * 1_000 || times.length >= MOST_SAMPLES;
  for (let left = kinds; left.length > 0; left = left.filter((kind) => !isDone(kind))) {
    for (const kind of left) {
      context.signal.throwIfAborted();
      context.progress.tell(`${left.length} kinds of requests left; ${kind.name}`);
      for (let i = 0; i < BURST; i++) {
        const took = await ask(kind);
        kind.times.push(took);
        kind.spentMs += took;
      }
    }
  }
  agent.destroy();
  return kinds;
}

async function inEveryTenant(work: (tenant: string) => Promise<void>): Promise<void> {
  for (const tenant of TENANTS) await work(tenant);
}

function read(url: string, headers: Readonly<Record<string, string>>, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      answer.once('end', () =>
        answer.statusCode === 200
          ? resolve(text)
          : reject(new Error(`GET ${url} was answered ${answer.statusCode}: ${text}`)),
      );
    }).once('error', reject);
  });
}

/** Jobs of a tenant, from all over its history. */
async function sampleJobs(url: string, tenant: string): Promise<readonly SampleJob[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<SampleJob>(
      `SELECT id, created_at::float8 AS "createdAt", key FROM punctual.job_history TABLESAMPLE SYSTEM (0.2) REPEATABLE (7)
       WHERE tenant = $1 ORDER BY hashint8(created_at) LIMIT $2`,
      [tenant, SAMPLE_JOBS],
    );
    return rows;
  } finally {
    await client.end();
  }
}

function drawing(jobs: readonly SampleJob[]): Draw {
  const keyed = jobs.flatMap((job) => (job.key === null ? [] : [{ ...job, key: job.key }]));
  const below = (limit: number) => Math.floor(Math.random() * limit);
  const oneOf = <T>(values: readonly T[]): T => values[below(values.length)]!;
  return { job: () => oneOf(jobs), keyed: () => oneOf(keyed), oneOf, below };
}

function describe(
  context: Context,
  kinds: readonly Kind[],
  environment: Readonly<Record<string, string>>,
): ScenarioResult {
  const systems = kinds.map(
    (kind): SystemResult => ({
      ...{ name: kind.name, role: 'ours', version: productVersion, jobs: kind.jobs },
      ...spread(kind.times),
      settings: { 'such as': `GET ${kind.path}` },
    }),
  );
  const slowest = (indexed: boolean): Target => {
    const [worst] = systems
      .filter((_, i) => kinds[i]!.request.indexed === indexed)
      .sort((a, b) => b.p50Ms! - a.p50Ms!);
    const way = indexed ? 'by index' : 'by a scan';
    return atMost(`p50 of the slowest request ${way}: ${worst!.name}`, TARGET_MS, worst!.p50Ms!);
  };
  return {
    ...{ scenario: 'lists', seconds: context.seconds, systems, ratioToBestPeer: null, environment },
    what: [
      `${ROWS.toLocaleString('en')} ended jobs of ${DAYS} days and ${TENANTS.length} tenants, made by SQL in the partitions and with the indexes of the product; the largest tenant has 60 % of them. 1 % failed, a tenth has keys, a twentieth is of schedules. ${WAITING} jobs of each tenant wait, and ${CROWD.toLocaleString('en')} of yet another tenant, which are the newest.`,
      'One node in a process of its own, and one request at a time over one connection. The kinds of requests take turns. An operator asks for the largest tenant, a tenant with 4 % of the jobs by its own key. The time runs from the request to the last byte of the answer; `jobs` is how many the last page had (100 are asked for where nothing else is said).',
      `A page by a scan ends after some 20,000 jobs or 100 ms, and may be short; then it says where to go on.`,
    ],
    targets: [slowest(true), slowest(false)],
    problems: [],
  };
}
