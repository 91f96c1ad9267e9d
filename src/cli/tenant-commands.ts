import type { Command } from 'commander';
import { QUOTA_NAMES } from '../core/quotas.js';
import type { RateView } from '../core/rate.js';
import type { TenantView } from '../core/wire.js';
import { callsServer, readPages, type ServerCall } from './call.js';
import type { Cli } from './cli.js';
import {
  addRateOptions,
  type QuotaOptions,
  quota,
  type RateOptions,
  rateOf,
  rateText,
  requireChange,
  weight,
} from './option-values.js';
import type { Cell, Column, Output } from './output.js';
import { WIDE, watched } from './watch.js';

const COLUMNS: readonly Column[] = [
  { header: 'TENANT', shrink: 'name' },
  { header: 'NAME', shrink: 'name', drop: 3 },
  { header: 'SHARD', align: 'right', drop: 1 },
  { header: 'WEIGHT', align: 'right' },
  { header: 'RATE', align: 'right' },
  { header: 'QUOTAS', drop: 4 },
  { header: 'CREATED', drop: 2 },
];

interface TenantOptions extends RateOptions {
  readonly name?: string;
  readonly weight?: number;
  readonly quota?: QuotaOptions;
}

const QUOTA = [
  '--quota <name=n>',
  `a quota, such as liveJobs=10000, none for no limit; repeatable: ${QUOTA_NAMES.join(', ')}`,
  quota,
] as const;

/** `--tenant` is not among them: these commands act for no tenant, and name those that they are about. */
const GLOBALS = ['url', 'apiKey', 'json'] as const;

/** `punctual tenant …`: creating, listing and limiting tenants. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const tenant = program.command('tenant').description('create, list and limit tenants');
  const create = tenant
    .command('create')
    .description('create a tenant; one that was never created can be used, too, and has the defaults')
    .argument('<id>', 'the id that submissions name')
    .option('--name <name>', 'a name for people (default: its id)')
    .option('--weight <n>', 'its share of shared workers relative to other tenants (default: 1)', weight);
  addRateOptions(create);
  create.option(...QUOTA);
  callsServer<TenantOptions>(
    cli,
    create,
    async ({ api, output, options, args }) => {
      const { name } = options;
      const body = { id: args[0]!, ...(name !== undefined && { name }), ...limitsOf(options) };
      const view = await api.request<TenantView>('POST', '/v1/tenants', { body, signal: cli.interrupted });
      output.document(view, () => details(output, view));
    },
    GLOBALS,
  );
  const list = tenant
    .command('list')
    .description('list the tenants that were created')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
    const page = await readPages<TenantView>(api, '/v1/tenants', { signal: cli.interrupted });
    output.document(page, () => output.table(COLUMNS, page.data.map(row)));
  };
  callsServer(cli, list, watched(list, show), GLOBALS);
  const get = tenant
    .command('get')
    .description('show a tenant with its limits and quotas')
    .argument('<id>', 'the id of the tenant');
  callsServer(
    cli,
    get,
    async ({ api, output, args }) => {
      const path = `/v1/tenants/${encodeURIComponent(args[0]!)}`;
      const view = await api.request<TenantView>('GET', path, { signal: cli.interrupted });
      output.document(view, () => details(output, view));
    },
    GLOBALS,
  );
  addLimitCommand(tenant, cli);
}

function addLimitCommand(tenant: Command, cli: Cli): void {
  const command = tenant
    .command('limit')
    .description('set the share, the rate and the quotas of a tenant; what is not named stays as it is')
    .argument('<id>', 'the id of the tenant')
    .option('--weight <n>', 'its share of shared workers relative to other tenants', weight);
  addRateOptions(command);
  command.option(...QUOTA);
  callsServer<TenantOptions>(
    cli,
    command,
    async ({ api, output, options, args }) => {
      const body = limitsOf(options);
      requireChange(body, '--weight, --rate or --quota');
      const path = `/v1/tenants/${encodeURIComponent(args[0]!)}`;
      const request = { body, signal: cli.interrupted, retry: true };
      const view = await api.request<TenantView>('PATCH', path, request);
      output.document(view, () => details(output, view));
    },
    GLOBALS,
  );
}

interface TenantLimits {
  readonly weight?: number;
  readonly rate?: RateView | null;
  readonly quotas?: QuotaOptions;
}

function limitsOf(options: TenantOptions): TenantLimits {
  const { weight, quota } = options;
  return {
    ...(weight !== undefined && { weight }),
    ...rateOf(options),
    ...(quota !== undefined && { quotas: quota }),
  };
}

function quotaText(limit: number | null): string {
  return limit === null ? '-' : String(limit);
}

function row(tenant: TenantView): Cell[] {
  const { id, name, shard, weight, rate, quotas, createdAt } = tenant;
  const given = QUOTA_NAMES.filter((quotaName) => quotas[quotaName] !== null);
  const quotaTexts = given.map((quotaName) => `${quotaName}=${quotas[quotaName]}`).join(' ');
  return [id, name, String(shard), String(weight), rateText(rate), quotaTexts || '-', createdAt];
}

function details(output: Output, tenant: TenantView): string {
  return output.details([
    ['tenant', tenant.id],
    ['name', tenant.name],
    ['shard', String(tenant.shard)],
    ['weight', String(tenant.weight)],
    ['rate', rateText(tenant.rate)],
    ['burst', tenant.rate && String(tenant.rate.burst)],
    ...QUOTA_NAMES.map((name) => [name, quotaText(tenant.quotas[name])] as const),
    ['created', tenant.createdAt],
  ]);
}
