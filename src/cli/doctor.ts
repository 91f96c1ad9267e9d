import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Credentials } from '../client/credentials.js';
import { humanDuration } from '../core/duration.js';
import { ERROR_CODES, messageOf, PunctualError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { addAll } from '../core/long-lists.js';
import type { Style } from '../core/paint.js';
import type { SecretKeysView } from '../core/secret.js';
import { compareVersions, VERSION } from '../core/version.js';
import type { ClusterView, Page, UnservedView, Why, WorkerView } from '../core/wire.js';
import { tlsMistake } from '../transport/tls-mistakes.js';
import type { RequestOptions, Transport } from '../transport/transport.js';
import {
  findCredentials,
  type GlobalOptions,
  type LocalCall,
  openApi,
  readPages,
  runsLocally,
  tenantFlag,
} from './call.js';
import type { Cli } from './cli.js';
import { credentialsPath, firstDatabase, resolveSettings } from './configuration.js';
import { type Output, plural } from './output.js';

interface DoctorOptions {
  readonly databaseUrl?: string;
  readonly data?: string;
}

const STYLES: Readonly<Record<Check['status'], Style>> = { ok: 'green', warn: 'yellow', fail: 'red' };

/** `punctual doctor`: checks that find common problems, with advice. */
export function addDoctorCommand(program: Command, cli: Cli): void {
  const command = program
    .command('doctor')
    .description('check this machine, the nodes and the database, and say what to do')
    .option('--database-url <url>', 'check this Postgres too')
    .option('--data <folder>', 'the folder of `punctual up` (default: .punctual)');
  runsLocally<DoctorOptions>(cli, command, ['url', 'apiKey', 'tenant', 'json'], runDoctor);
}

async function runDoctor({ cli, output, options, exitWith }: LocalCall<DoctorOptions>): Promise<void> {
  const { databaseUrl, data } = options;
  const { config } = resolveSettings(cli, { databaseUrl, data });
  const checks: Check[] = [
    checkNodeVersion(process.versions.node),
    ...(await checkDataFolder(cli, config.data)),
    ...(await checkPrograms(config.controlGroup)),
    ...(await checkServer(cli, options)),
    ...(config.databaseUrl === '' ? [] : await checkDatabase(config.databaseUrl)),
  ];
  const ok = checks.every((check) => check.status !== 'fail');
  output.document({ ok, checks }, () => checks.map((check) => renderCheck(output, check)).join(''));
  if (!ok) exitWith(1);
}

function renderCheck(output: Output, check: Check): string {
  const status = output.paint(STYLES[check.status], check.status.padEnd(4));
  const advice = check.advice ? `      ${check.advice}\n` : '';
  return `${status}  ${check.name}: ${check.detail}\n${advice}`;
}

/** The outcome of one check. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** What to do if something is wrong. */
  readonly advice?: string;
}

const OLDEST_NODE = '20.19.0';
const REQUEST_TIMEOUT_MS = 5_000;
/** How many waiting jobs are read, and for how many kinds of them the reason is asked for. */
const WAITING_JOBS = 200;
const WAITING_KINDS = 20;
/** How many kinds of jobs without a worker are named. */
const UNSERVED_KINDS = 20;
/** The `Date` header has whole seconds, so smaller differences mean nothing. */
const CLOCK_TOLERANCE_MS = 2_000;

/** Whether this version of Node is supported. */
export function checkNodeVersion(version: string): Check {
  const name = 'Node.js';
  if (compareVersions(version, OLDEST_NODE) >= 0) return { name, status: 'ok', detail: version };
  return { name, status: 'fail', detail: version, advice: `Install Node.js ${OLDEST_NODE} or newer.` };
}

/** Whether only its owner can read the key in the data folder; a missing folder is fine. */
async function checkDataFolder(cli: Cli, data: string): Promise<Check[]> {
  const name = 'data folder';
  const path = credentialsPath(resolve(cli.folder, data));
  const found = await stat(path).catch(() => null);
  if (found === null) return [{ name, status: 'ok', detail: `no credentials in ${data}` }];
  if ((found.mode & 0o077) === 0)
    return [{ name, status: 'ok', detail: `${data}, its key readable by its owner only` }];
  const detail = `others can read the key in ${path}`;
  return [{ name, status: 'fail', detail, advice: `Run: chmod 600 ${path}` }];
}

/** What this machine offers to workers that run programs. Imported here, because it is code of workers. */
async function checkPrograms(controlGroup: string): Promise<Check[]> {
  const [{ lookAtMachine }, { offeredBy, lookForControlGroups }] = await Promise.all([
    import('../worker/runners/exec/machine.js'),
    import('../worker/runners/exec/machine-offers.js'),
  ]);
  return [...offeredBy(await lookAtMachine(), await lookForControlGroups(controlGroup))];
}

/** Checks the nodes and the cluster; stops at the first failure that makes further checks impossible. */
async function checkServer(cli: Cli, options: GlobalOptions): Promise<Check[]> {
  let credentials: Credentials;
  try {
    credentials = findCredentials(cli, options);
  } catch (error) {
    return [failed('credentials', error)];
  }
  const { urls } = credentials;
  const api = openApi(credentials, options.tenant);
  const checks: Check[] = [{ name: 'credentials', status: 'ok', detail: `for ${urls.join(', ')}` }];
  try {
    for (const url of urls) addAll(checks, await checkNode(url, cli.now));
    if (checks.some((check) => check.status === 'fail')) return checks;
    const request = { signal: cli.interrupted, timeoutMs: REQUEST_TIMEOUT_MS };
    const cluster = await api.request<ClusterView>('GET', '/v1/cluster', request);
    checks.push({ name: 'key', status: 'ok', detail: 'accepted' });
    addAll(checks, checkCluster(cluster));
    const workers = await readPages<WorkerView>(api, '/v1/workers', request);
    const forTenant = tenantFlag(options);
    checks.push(checkWorkers(workers.data, forTenant));
    checks.push(await checkWaitingJobs(api, request, forTenant));
    addAll(checks, await checkSecretKeys(credentials, request));
  } catch (error) {
    const name = error instanceof PunctualError && error.exitCode === 4 ? 'key' : 'cluster';
    checks.push(failed(name, error));
  } finally {
    await api.close();
  }
  return checks;
}

/** Whether a node answers, and whether the clocks agree. */
export async function checkNode(url: string, now: () => number): Promise<Check[]> {
  const name = `node ${url}`;
  try {
    const askedAt = now();
    const answer = await fetch(new URL('/livez', url), { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
    await answer.arrayBuffer();
    const midpoint = (askedAt + now()) / 2;
    if (!answer.ok) {
      const detail = `answers ${answer.status} to /livez`;
      return [{ name, status: 'fail', detail, advice: 'Check that --url names a Punctual node.' }];
    }
    const date = Date.parse(answer.headers.get('date') ?? '');
    return [
      { name, status: 'ok', detail: 'reachable' },
      ...(Number.isNaN(date) ? [] : [checkClock(date - midpoint)]),
    ];
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error;
    const reason = messageOf(cause);
    const mistake = tlsMistake(url, String((cause as { code?: unknown } | null)?.code), reason);
    const advice = mistake?.advice ?? 'Check --url, or start it with `punctual up`.';
    return [{ name, status: 'fail', detail: `not reachable: ${reason}`, advice }];
  }
}

/** Whether the clocks of this machine and of the node agree; due times follow the database's clock. */
export function checkClock(differenceMs: number): Check {
  const name = 'clock';
  const amount = humanDuration(Math.abs(differenceMs));
  if (Math.abs(differenceMs) <= CLOCK_TOLERANCE_MS) {
    return { name, status: 'ok', detail: "agrees with the node's" };
  }
  const detail = `this machine is ${amount} ${differenceMs > 0 ? 'behind' : 'ahead of'} the node`;
  return { name, status: 'warn', detail, advice: 'Synchronise the clocks (NTP).' };
}

/** Whether every shard has a leader, dispatch is on, and the nodes have this version. */
export function checkCluster(cluster: ClusterView): Check[] {
  const checks = cluster.shards.map((shard): Check => {
    const name = `leader of shard ${shard.id}`;
    if (shard.leader !== null) return { name, status: 'ok', detail: `${shard.leader}, epoch ${shard.epoch}` };
    return {
      name,
      status: 'fail',
      detail: 'none',
      advice: 'Wait a few seconds; if there is still none, look at the logs of the nodes.',
    };
  });
  if (cluster.paused) {
    const advice = 'Start it again with `punctual cluster resume`.';
    checks.push({ name: 'dispatch', status: 'warn', detail: 'paused', advice });
  } else checks.push({ name: 'dispatch', status: 'ok', detail: 'on' });
  if (cluster.nodes.length === 0) {
    // A tenant is told no more than whether all is well.
    const advice = 'Wait a few seconds; if it stays so, ask the operator.';
    checks.push(
      cluster.ok
        ? { name: 'cluster', status: 'ok', detail: 'well' }
        : { name: 'cluster', status: 'fail', detail: 'a shard has no leader', advice },
    );
    return checks;
  }
  const dead = cluster.nodes.filter(({ state }) => state === 'dead').map(({ id }) => id);
  const alive = cluster.nodes.filter(({ state }) => state === 'alive');
  const others = [...new Set(alive.map((node) => node.version))].filter((version) => version !== VERSION);
  if (dead.length > 0) {
    const advice = 'Start them again, or wait: a node that stays away is forgotten after ten minutes.';
    checks.push({ name: 'nodes', status: 'warn', detail: `dead: ${dead.join(', ')}`, advice });
  } else checks.push({ name: 'nodes', status: 'ok', detail: `${alive.length} alive` });
  if (others.length > 0) {
    const detail = `nodes run ${others.join(', ')}, this program is ${VERSION}`;
    checks.push({ name: 'version', status: 'warn', detail, advice: 'Use the same version everywhere.' });
  } else checks.push({ name: 'version', status: 'ok', detail: VERSION });
  return checks;
}

/** Whether a worker is alive. */
export function checkWorkers(workers: readonly WorkerView[], forTenant = ''): Check {
  const alive = workers.filter((worker) => worker.state === 'alive');
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  if (alive.length > 0) {
    return { name: 'workers', status: 'ok', detail: `${alive.length} alive with ${plural(slots, 'slot')}` };
  }
  const advice = `Start one with \`punctual worker run --module FILE${forTenant}\`.`;
  return { name: 'workers', status: 'warn', detail: 'none is alive, so no job can run', advice };
}

/** A waiting job as the example of its kind, and what it waits for. */
interface Waiting {
  readonly job: Job;
  readonly why: Why;
}

async function checkWaitingJobs(api: Transport, request: RequestOptions, forTenant: string): Promise<Check> {
  try {
    const path = `/v1/unserved?limit=${UNSERVED_KINDS}`;
    const [waiting, unserved] = await Promise.all([
      whyOfWaiting(api, request),
      api.request<Page<UnservedView>>('GET', path, request),
    ]);
    return checkWaiting(waiting, unserved.data, forTenant);
  } catch (error) {
    return { ...failed('waiting jobs', error), status: 'warn' };
  }
}

/** For each kind among the newest waiting jobs: one example and what it waits for. */
async function whyOfWaiting(api: Transport, request: RequestOptions): Promise<Waiting[]> {
  const path = `/v1/jobs?state=pending&limit=${WAITING_JOBS}`;
  const { data } = await api.request<Page<Job>>('GET', path, request);
  return Promise.all(
    examples(data)
      .slice(0, WAITING_KINDS)
      .map(async (job) => ({
        job,
        why: await api.request<Why>('GET', `/v1/jobs/${job.id}/why`, request),
      })),
  );
}

/** One job per kind: the one that is due first, because a job that is not due waits for nothing else. */
export function examples(jobs: readonly Job[]): Job[] {
  const kinds = new Map<string, Job>();
  for (const job of jobs) {
    const kind = JSON.stringify([job.queue, job.task, job.target.type, job.requires]);
    const known = kinds.get(kind);
    const isBetter =
      !known || (known.hold && !job.hold) || (known.hold === job.hold && job.runAt < known.runAt);
    if (isBetter) kinds.set(kind, job);
  }
  return [...kinds.values()];
}

/**
 * Whether there are jobs that no worker can run: among the newest ones, or those that nodes warn about. `forTenant` is the
 * option that names their tenant, if they are not of the default one.
 */
export function checkWaiting(
  waiting: readonly Waiting[],
  unserved: readonly UnservedView[],
  forTenant = '',
): Check {
  const name = 'waiting jobs';
  const stuck = waiting.filter(({ why }) => why.gate === 'no-fitting-worker');
  const kinds = new Set([
    ...stuck.map(({ job }) => describeKind({ ...job, target: job.target.type })),
    ...unserved.map(describeKind),
  ]);
  if (kinds.size === 0) {
    const detail = `none is without a worker for long, nor are the newest ${WAITING_JOBS}`;
    return { name, status: 'ok', detail };
  }
  const detail = `no worker can run ${[...kinds].join('; ')}`;
  const why = stuck[0] ? `; \`punctual job why ${stuck[0].job.id}${forTenant}\` says what is missing` : '';
  const advice = `Start a worker that has all of that${forTenant && `, with${forTenant}`}${why}.`;
  return { name, status: 'warn', detail, advice: advice + elsewhere(stuck) };
}

/** What an operator is told about workers that could run such jobs, but do so for other tenants. */
function elsewhere(stuck: readonly Waiting[]): string {
  const found = stuck.find(({ why }) => why.figures.workersOfOtherTenants !== undefined);
  if (!found) return '';
  const { tenant, id } = found.job;
  return ` Workers of other tenants could run job ${id}: one with --shared or --tenant ${tenant} would take it.`;
}

function describeKind({ task, target, queue, requires }: Omit<UnservedView, 'ready' | 'since' | 'detail'>) {
  const what = task === null ? `jobs with a target of type ${target}` : `task ${task}`;
  const labels = Object.entries(requires).map(([name, value]) => `${name}=${value}`);
  return `${what} in queue ${queue}${labels.length === 0 ? '' : ` with ${labels.join(', ')}`}`;
}

/** The master keys of each node, which may differ; nothing for those who are no operators. */
async function checkSecretKeys(credentials: Credentials, request: RequestOptions): Promise<Check[]> {
  const nodes: NodeKeys[] = [];
  for (const url of credentials.urls) {
    const api = openApi({ ...credentials, urls: [url] }, undefined);
    try {
      nodes.push({ url, keys: await api.request<SecretKeysView>('GET', '/v1/secret-keys', request) });
    } catch (error) {
      if (error instanceof PunctualError && error.exitCode === 4) return [];
      return [{ ...failed('secrets', error), status: 'warn' }];
    } finally {
      await api.close();
    }
  }
  return [checkNodeKeys(nodes)];
}

/** The master keys of one node. */
interface NodeKeys {
  readonly url: string;
  readonly keys: SecretKeysView;
}

/** Whether every node can read the secrets that there are, and all encrypt with the same key. */
export function checkNodeKeys(nodes: readonly NodeKeys[]): Check {
  const name = 'secrets';
  const stored = nodes[0]?.keys.stored ?? [];
  const needed = stored.map(({ keyId }) => keyId);
  const variable = 'PUNCTUAL_SECRET_KEY or PUNCTUAL_SECRET_KEY_FILE';
  for (const { url, keys } of nodes) {
    const missing = needed.filter((keyId) => !keys.known.includes(keyId));
    if (missing.length === 0) continue;
    const detail =
      keys.current === null
        ? `there are secrets, and ${url} has no master key`
        : `${url} lacks the master key ${missing.join(', ')} that secrets are encrypted with`;
    return { name, status: 'warn', detail, advice: `Add the key to ${variable} of that node.` };
  }
  const current = [...new Set(nodes.map(({ keys }) => keys.current))];
  if (current.length > 1) {
    const detail = `the nodes encrypt with different master keys: ${current.map((key) => key ?? 'none').join(', ')}`;
    return { name, status: 'warn', detail, advice: `Give all nodes the same ${variable}.` };
  }
  const old = needed.filter((keyId) => keyId !== current[0]);
  if (old.length > 0) {
    const detail = `some are still encrypted with the master key ${old.join(', ')}`;
    return { name, status: 'warn', detail, advice: 'Run `punctual secret rekey`.' };
  }
  if (current[0] === null || current[0] === undefined)
    return { name, status: 'ok', detail: 'none, and no master key is set' };
  return { name, status: 'ok', detail: `encrypted with the master key ${current[0]}` };
}

/** Whether the database can be reached and has the schema of this version. */
export async function checkDatabase(databaseUrl: string): Promise<Check[]> {
  const name = 'database';
  const { findSettingsBy, migrationStatus } = await import('./database-work.js');
  try {
    const url = firstDatabase(databaseUrl);
    const { serverVersion, pending } = await migrationStatus(url);
    const behind = (await findSettingsBy(url)) === 'startup' ? '' : ' behind a pooler in session mode';
    const server: Check = { name, status: 'ok', detail: `Postgres ${serverVersion}${behind}` };
    if (pending.length === 0)
      return [server, { name: 'schema', status: 'ok', detail: 'up to date' }, ...(await checkWall(url))];
    const advice = 'Run `punctual db migrate`, or start a node, which does it too.';
    return [server, { name: 'schema', status: 'warn', detail: `lacks ${pending.join(', ')}`, advice }];
  } catch (error) {
    return [failed(name, error)];
  }
}

/** Whether what nodes read for people is behind row-level security. Without it they work all the same. */
async function checkWall(databaseUrl: string): Promise<Check[]> {
  const { findWall } = await import('./database-work.js');
  const wall = await findWall(databaseUrl);
  if (wall === null) return [];
  const name = 'row-level security';
  if (wall.stands) return [{ name, status: 'ok', detail: `reads for people take on ${wall.role}` }];
  const advice = `Have an administrator of the database run this, then restart the nodes: ${wall.remedy}`;
  return [{ name, status: 'warn', detail: wall.reason, advice }];
}

function failed(name: string, error: unknown): Check {
  const advice = error instanceof PunctualError ? error.hint : ERROR_CODES.INTERNAL.hint;
  return { name, status: 'fail', detail: messageOf(error), ...(advice && { advice }) };
}
