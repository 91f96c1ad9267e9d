import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { loadServer, PROGRAM } from './product.js';

/** Keys and tenants, made the way an operator makes them. */

/** Every kind of quota, each far above what a scenario needs: it costs what it costs, and refuses nothing. */
export const GENEROUS_QUOTAS = {
  liveJobs: 100_000,
  laterJobs: 100_000,
  schedules: 1_000,
  queues: 1_000,
  submissionsPerSecond: 1_000_000,
  payloadBytes: 65_536,
} as const;

/** A tenant, and a key that may read, submit and work for it alone. */
export interface TenantAccess {
  readonly tenant: string;
  readonly apiKey: string;
}

/** Makes an operator's key. */
export async function operatorKey(databaseUrl: string): Promise<string> {
  const args = [PROGRAM, 'key', 'create', '--operator', '--json'];
  const env = { ...process.env, PUNCTUAL_DATABASE_URL: databaseUrl };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return (JSON.parse(stdout) as { key: string }).key;
}

/** Makes a key of a tenant; a tenant that was never created has one all the same. */
export async function tenantKey(url: string, operator: string, tenant: string): Promise<string> {
  const scopes = ['read', 'submit', 'work'];
  const { key } = await post<{ key: string }>(url, operator, '/v1/keys', { name: 'bench', scopes }, tenant);
  return key;
}

/** Makes a tenant with generous quotas. They hold from the next start of a node on, without waiting for news of them. */
export async function makeTenantWithQuotas(
  databaseUrl: string,
  data: string,
  tenant: string,
): Promise<TenantAccess> {
  const { startNode } = await loadServer();
  const node = await startNode({ databaseUrl, data });
  try {
    const operator = await operatorKey(databaseUrl);
    await post(node.url, operator, '/v1/tenants', { id: tenant, quotas: GENEROUS_QUOTAS });
    return { tenant, apiKey: await tenantKey(node.url, operator, tenant) };
  } finally {
    await node.stop();
  }
}

async function post<Answer>(
  url: string,
  apiKey: string,
  path: string,
  body: object,
  tenant = 'default',
): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'punctual-tenant': tenant,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  if (!answer.ok) throw new Error(`POST ${path} was answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Answer;
}
