import { resolve } from 'node:path';
import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { ALL_TENANTS } from '../core/events.js';
import { NAME_PATTERN, NAME_RULE } from '../core/job.js';
import type { ListedGrant, SubmitGrant } from '../store/submit-grants.js';
import type { Wall } from '../store/tenant-wall.js';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { firstDatabase, resolveSettings } from './configuration.js';
import type { Column } from './output.js';
import { watched } from './watch.js';

interface DatabaseOptions {
  readonly databaseUrl?: string;
}

/** `punctual db …`: migrating the cluster's database, and letting other roles submit jobs in it. */
export function addDatabaseCommands(program: Command, cli: Cli): void {
  const db = program
    .command('db')
    .description('migrate the database, show its version, or let its roles submit jobs');
  addPass(db, cli, 'migrate', 'apply missing migrations; nodes do that by themselves, too');
  addPass(db, cli, 'status', 'show which migrations are applied and which are missing');
  addUrlCommand(db, cli);
  addGrantCommands(db, cli);
}

function addPass(db: Command, cli: Cli, verb: 'migrate' | 'status', description: string): void {
  const command = db
    .command(verb)
    .description(description)
    .option('--database-url <url>', 'the Postgres of the cluster');
  const show = async ({ output, options }: LocalCall<DatabaseOptions>): Promise<void> => {
    const { config } = resolveSettings(cli, { databaseUrl: options.databaseUrl });
    const url = firstDatabase(config.databaseUrl);
    const { migrate, migrationStatus, raiseWall, findWall } = await import('./database-work.js');
    const report = await (verb === 'migrate' ? migrate : migrationStatus)(url);
    const wall = await (verb === 'migrate' ? raiseWall : findWall)(url);
    output.document({ ...report, wall }, () =>
      output.details([
        ['server', `Postgres ${report.serverVersion}`],
        ['schema', String(report.at)],
        [verb === 'migrate' ? 'applied now' : 'applied', report.applied.join(', ') || 'nothing'],
        ['missing', report.pending.join(', ') || 'nothing'],
        ...(wall === null ? [] : [wallLine(wall)]),
      ]),
    );
  };
  const run = verb === 'status' ? watched(command, show) : show;
  runsLocally<DatabaseOptions>(cli, command, ['json'], run);
}

function wallLine(wall: Wall): readonly [string, string] {
  return [
    'row-level security',
    wall.stands ? `by ${wall.role}` : `none: ${wall.reason}; run: ${wall.remedy}`,
  ];
}

interface UrlOptions {
  readonly data?: string;
  readonly administrator?: boolean;
}

function addUrlCommand(db: Command, cli: Cli): void {
  const command = db
    .command('url')
    .description(
      'print the address of the embedded database that runs under `punctual up`, with its password',
    )
    .option('--administrator', "as the server's superuser, who can create roles and databases")
    .option('--data <folder>', 'the folder of `punctual up` (default: .punctual)');
  runsLocally<UrlOptions>(cli, command, ['json'], async ({ output, options }) => {
    const { config } = resolveSettings(cli, { data: options.data });
    const urls = await runningEmbedded(cli, config.data);
    const url = options.administrator ? urls.administratorUrl : urls.url;
    output.document({ url }, () => `${url}\n`);
  });
}

/** The addresses of the embedded database; throws when the folder has none, or when it does not run. */
async function runningEmbedded(cli: Cli, data: string) {
  const folder = resolve(cli.folder, data);
  const { connect, embeddedUrls } = await import('./database-work.js');
  const urls = await embeddedUrls(folder);
  if (urls === null) {
    throw new PunctualError(
      'CONFIGURATION',
      `There is no embedded database in ${folder}: start \`punctual up\` in this folder, or name the folder with --data. A database of your own is named with --database-url.`,
    );
  }
  try {
    await (await connect(urls.url)).end();
  } catch (error) {
    const message = `The embedded database in ${folder} does not run; \`punctual up\` starts it.`;
    throw new PunctualError('DATABASE_UNAVAILABLE', message, { cause: error });
  }
  return urls;
}

interface GrantOptions extends DatabaseOptions {
  readonly data?: string;
  readonly allTenants?: boolean;
  readonly name?: string;
}

const COLUMNS: readonly Column[] = [
  { header: 'ROLE', shrink: true },
  { header: 'TENANT', shrink: true },
  { header: 'CREATOR', shrink: true },
  { header: 'GRANTED' },
];

function addGrantCommands(db: Command, cli: Cli): void {
  const grant = withDatabase(
    db
      .command('grant')
      .description('let a database role do something')
      .command('submit')
      .description(
        'let a database role submit and cancel jobs of a tenant by SQL (`punctual.submit_job`, `punctual.cancel_job`), and nothing else',
      )
      .argument('<role>', 'the role, as Postgres lists it')
      .option('--all-tenants', 'of every tenant, instead of the one in --tenant (default: default)')
      .option('--name <name>', 'recorded as the creator of its jobs (default: transaction:ROLE)'),
  );
  runsLocally<GrantOptions>(cli, grant, ['tenant', 'json'], async (call) => {
    const role = call.args[0]!;
    const tenant = grantedTenant(call) ?? 'default';
    const creator = call.options.name ?? `transaction:${role}`;
    const { grantSubmit } = await import('./database-work.js');
    const made = await grantSubmit(await databaseOf(call), { role, tenant, creator });
    call.output.document(made, () => table(call, [made]));
  });
  const revoke = withDatabase(
    db
      .command('revoke')
      .description('take back what was granted')
      .command('submit')
      .description('take back what `db grant submit` has given to a role; without --tenant, all of it')
      .argument('<role>', 'the role, as Postgres lists it')
      .option('--all-tenants', 'only the grant that is for every tenant'),
  );
  runsLocally<GrantOptions>(cli, revoke, ['tenant', 'json'], async (call) => {
    const role = call.args[0]!;
    const { revokeSubmit } = await import('./database-work.js');
    const revoked = await revokeSubmit(await databaseOf(call), role, grantedTenant(call));
    call.output.document({ revoked }, () =>
      revoked.length > 0 ? table(call, revoked) : `nothing was granted to ${role}\n`,
    );
  });
  const list = withDatabase(
    db
      .command('grants')
      .description('list what was granted to database roles, and which rights the database lacks for it'),
  );
  runsLocally<GrantOptions>(cli, list, ['json'], async (call) => {
    const { listSubmitGrants } = await import('./database-work.js');
    const data = await listSubmitGrants(await databaseOf(call));
    call.output.document({ data }, () => listTable(call, data));
    const lacking = data.filter(({ missing }) => missing.length > 0);
    if (!call.output.json) for (const grant of lacking) call.output.note(missingText(grant));
  });
}

function withDatabase(command: Command): Command {
  return command
    .option('--database-url <url>', 'the Postgres of the cluster (default: the embedded one of --data)')
    .option('--data <folder>', 'the folder of `punctual up` (default: .punctual)');
}

/** The database that is named, or else the embedded one. */
async function databaseOf({ cli, options }: LocalCall<GrantOptions>): Promise<string> {
  const { config } = resolveSettings(cli, { databaseUrl: options.databaseUrl, data: options.data });
  if (config.databaseUrl !== '') return firstDatabase(config.databaseUrl);
  return (await runningEmbedded(cli, config.data)).url;
}

function grantedTenant({ options }: LocalCall<GrantOptions>): string | undefined {
  const { tenant, allTenants } = options;
  if (allTenants && tenant !== undefined) {
    throw new PunctualError('USAGE', 'Give either --tenant or --all-tenants.');
  }
  if (tenant !== undefined && !NAME_PATTERN.test(tenant)) {
    throw new PunctualError('USAGE', `--tenant ${NAME_RULE}.`);
  }
  return allTenants ? ALL_TENANTS : tenant;
}

function listTable({ output }: LocalCall<GrantOptions>, grants: readonly ListedGrant[]): string {
  return output.table(
    [...COLUMNS, { header: 'RIGHTS' }],
    grants.map(({ role, tenant, creator, grantedAt, missing }) => [
      ...[role, tenant, creator, grantedAt],
      missing.length === 0 ? { text: 'complete', style: 'green' } : { text: 'missing', style: 'red' },
    ]),
  );
}

/** What the role lacks, and the command that gives it. The same grant again changes nothing else. */
function missingText({ role, tenant, creator, missing }: ListedGrant): string {
  const whose = tenant === ALL_TENANTS ? ' --all-tenants' : tenant === 'default' ? '' : ` --tenant ${tenant}`;
  const name = creator === `transaction:${role}` ? '' : ` --name ${JSON.stringify(creator)}`;
  const command = `\`punctual db grant submit ${role}${whose}${name}\``;
  if (missing.includes('the role')) {
    return `The database has no role ${role}: create it, then run ${command}; or run \`punctual db revoke submit ${role}\`.`;
  }
  return `The database has not given ${role} what it needs (${missing.join(', ')}): run ${command}.`;
}

function table({ output }: LocalCall<GrantOptions>, grants: readonly SubmitGrant[]): string {
  return output.table(
    COLUMNS,
    grants.map(({ role, tenant, creator, grantedAt }) => [role, tenant, creator, grantedAt]),
  );
}
