import type { AuditAuthor } from '../core/audit.js';
import { type FieldError, invalid, PunctualError } from '../core/errors.js';
import { addAll } from '../core/long-lists.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { normalise } from '../core/schedule-definition.js';
import type { AppliedSchedules, ScheduleInput } from '../core/wire.js';
import { findSchedule, listManaged } from '../store/schedules.js';
import { mustNotBeOfOthers, type Request, type ScheduleChanges } from './schedule-changes.js';
import type { ScheduleLeader } from './schedule-leader.js';

/** How many schedules one call removes; the next call removes the rest. */
const MAX_REMOVED = 1_000;

/** Whose schedules are to be as its code says. */
export interface Owner {
  readonly tenant: string;
  readonly actor: string;
  readonly name: string;
  /** Who asks, for the audit. */
  readonly author?: AuditAuthor;
}

type Step = 'create' | 'change' | 'none';

/** A schedule of the code, and what has to be done for it. */
interface Planned {
  readonly name: string;
  readonly definition: ScheduleDefinition;
  /** Whether it begins paused; one that exists stays paused or not as it is. */
  readonly paused: boolean;
  readonly step: Step;
}

/**
 * Makes the schedules of a program what its code says. Everything is checked before anything is written. Each schedule
 * is then written by itself, and compared again in the queue that all writes about schedules go through: programs that
 * start at the same time do the work once, and a call that broke off is completed by the next one.
 */
export async function applySchedules(
  leader: ScheduleLeader,
  changes: ScheduleChanges,
  owner: Owner,
  wanted: readonly ScheduleInput[],
  { prune, dryRun }: { readonly prune: boolean; readonly dryRun: boolean },
): Promise<AppliedSchedules> {
  const { tenant, actor, author } = owner;
  const by = { tenant, actor, ...(author && { author }) };
  const planned = await plan(leader, changes, owner, wanted);
  const surplus = prune ? await findSurplus(leader, owner, new Set(wanted.map(({ name }) => name))) : [];
  const done: Record<Step, string[]> = { create: [], change: [], none: [] };
  for (const each of planned) {
    const { name, step } = each;
    const isPlan = dryRun || step === 'none';
    done[isPlan ? step : await write(changes, { ...by, name }, each, owner.name)].push(name);
  }
  const removed: string[] = [];
  for (const name of surplus.slice(0, MAX_REMOVED)) {
    if (dryRun || (await changes.removeManaged({ ...by, name }, owner.name))) removed.push(name);
  }
  return {
    ...{ created: done.create, changed: done.change, removed },
    unchanged: done.none.length,
    more: surplus.length > MAX_REMOVED,
    dryRun,
  };
}

/** What has to be done for each schedule; throws if one is wrong, or in the code of another program. */
async function plan(
  leader: ScheduleLeader,
  changes: ScheduleChanges,
  owner: Owner,
  wanted: readonly ScheduleInput[],
): Promise<Planned[]> {
  const planned: Planned[] = [];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, { name, paused = false, ...input }] of wanted.entries()) {
    if (names.has(name)) errors.push({ pointer: `/schedules/${i}/name`, detail: `${name} is there twice` });
    names.add(name);
    // One by one: a definition may be large, and there may be many.
    const found = await findSchedule(leader.hot, owner.tenant, name);
    if (found) mustNotBeOfOthers(found, owner.name);
    const definition = normalise(input);
    const isSame = found?.definition === JSON.stringify(definition);
    if (!isSame)
      addAll(errors, await errorsOf(() => changes.check(owner.tenant, definition), `/schedules/${i}`));
    planned.push({ name, definition, paused, step: isSame ? 'none' : found ? 'change' : 'create' });
  }
  if (errors.length > 0) throw invalid(errors);
  return planned;
}

/** The schedules of the owner that its code no longer has: at most one more than a call removes. */
async function findSurplus(
  { hot }: ScheduleLeader,
  { tenant, name: owner }: Owner,
  wanted: ReadonlySet<string>,
): Promise<string[]> {
  const surplus: string[] = [];
  for (let after = ''; ; ) {
    const names = await listManaged(hot, tenant, owner, after, MAX_REMOVED);
    addAll(
      surplus,
      names.filter((name) => !wanted.has(name)),
    );
    if (names.length < MAX_REMOVED || surplus.length > MAX_REMOVED) return surplus;
    after = names.at(-1)!;
  }
}

/**
 * Creates or replaces a schedule; answers with what was done. Between the plan and this, another program may have created
 * or deleted it, or done the same.
 */
async function write(
  changes: ScheduleChanges,
  request: Request,
  { definition, paused, step }: Planned,
  owner: string,
): Promise<Step> {
  const create = async (): Promise<Step> => {
    await changes.create(request, { ...definition }, paused, owner);
    return 'create';
  };
  const replace = async (): Promise<Step> =>
    (await changes.replace(request, { ...definition }, owner)) ? 'change' : 'none';
  try {
    return await (step === 'create' ? create() : replace());
  } catch (error) {
    const code = error instanceof PunctualError ? error.code : null;
    if (code === 'SCHEDULE_EXISTS') return replace();
    if (code === 'SCHEDULE_NOT_FOUND') return create();
    throw error;
  }
}

async function errorsOf(check: () => Promise<void>, pointer: string): Promise<readonly FieldError[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
    return error.errors.map((each) => ({ ...each, pointer: pointer + each.pointer }));
  }
}
