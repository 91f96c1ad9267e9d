import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Fault, Lane } from './fault.js';
import type { FaultRecord } from './history.js';
import { monotonic } from './monotonic.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

/** The scenario of all faults together, beside schedules, workflows and batches. */
export const MIXED = 'mixed';
/** All faults while many workflows, batches, jobs with http targets, or jobs that run programs are submitted. */
export const WORKFLOW_MIXED = 'workflow-mixed';
export const BATCH_MIXED = 'batch-mixed';
export const HTTP_MIXED = 'http-mixed';
/** Needs a compiler of C, and so its faults are not among those of all faults together. */
export const EXEC_MIXED = 'exec-mixed';
const ALL_FAULTS: readonly string[] = [WORKFLOW_MIXED, BATCH_MIXED, HTTP_MIXED, EXEC_MIXED, MIXED];

/**
 * In a mixed run every kind comes once in this time. Twice as often would leave the scheduler no time to work between
 * faults, so that nothing but the faults themselves would be tested.
 */
const MIXED_ROUND_MS = 60_000;
/** How often a fault is tried that finds nothing to break, or whose own connection another fault has ended. */
const MAX_GOES = 8;

/** Loads every fault there is. */
export async function loadFaults(): Promise<Fault[]> {
  const folder = join(import.meta.dirname, 'faults');
  const files = readdirSync(folder).filter((name) => /^[a-z-]+\.[jt]s$/.test(name));
  const modules = await Promise.all(
    files.sort().map((name) => import(pathToFileURL(join(folder, name)).href) as Promise<{ fault: Fault }>),
  );
  return modules.map((module) => module.fault);
}

/** Scenarios in which schedules fire meanwhile, and the kind of fault in each. */
const WITH_SCHEDULES: Readonly<Record<string, string>> = {
  'cron-leader-kill': 'leader-kill',
  'cron-pause': 'leader-pause',
  'cron-clock-skew': 'clock-skew',
  'cron-postgres-crash': 'postgres-crash',
};

/** Whether schedules fire in a scenario. */
export function hasSchedules(scenario: string): boolean {
  return scenario === MIXED || scenario in WITH_SCHEDULES;
}

/** The names of all scenarios. */
export function scenariosOf(faults: readonly Fault[]): string[] {
  const own = new Set(faults.map((fault) => fault.scenario));
  return [...own, ...Object.keys(WITH_SCHEDULES), ...ALL_FAULTS.filter((scenario) => !own.has(scenario))];
}

/** The faults of a scenario. */
export function faultsOf(faults: readonly Fault[], scenario: string): Fault[] {
  if (scenario === MIXED) return faults.filter((fault) => fault.scenario !== EXEC_MIXED);
  // Faults of workflows find nothing to break among batches or calls, and the other way round.
  if (ALL_FAULTS.includes(scenario))
    return faults.filter((fault) => fault.scenario === scenario || !ALL_FAULTS.includes(fault.scenario));
  const kind = WITH_SCHEDULES[scenario];
  return faults.filter((fault) => (kind ? fault.kind === kind : fault.scenario === scenario));
}

/** How often each kind of fault must be seen to take effect; a fault that no observer saw has proven nothing. */
export function wantedOfEach(scenario: string, seconds: number): number {
  return ALL_FAULTS.includes(scenario) ? mixedRounds(seconds * 1_000) : 1;
}

export interface Plan {
  readonly scenario: string;
  readonly faults: readonly Fault[];
  readonly forMs: number;
}

/** Injects faults: each lane takes its own in a random order, again and again. */
export async function inject(
  plan: Plan,
  scene: Scene,
  random: Random,
  onRecord: (record: FaultRecord) => void,
): Promise<void> {
  const lanes = new Set<Lane>(plan.faults.map((fault) => fault.lane));
  await Promise.all(
    [...lanes].map((lane) => {
      const faults = plan.faults.filter((fault) => fault.lane === lane);
      return runLane({ ...plan, faults }, scene, random.branch(), onRecord);
    }),
  );
}

async function runLane(
  plan: Plan,
  scene: Scene,
  random: Random,
  onRecord: (record: FaultRecord) => void,
): Promise<void> {
  const begin = monotonic();
  for (const { fault, at, source } of timetable(plan, random)) {
    await sleep(Math.max(0, begin + at - monotonic()));
    // A lane of faults that follow each other without a pause comes to its end when the time is up.
    if (!ALL_FAULTS.includes(plan.scenario) && monotonic() - begin > plan.forMs) return;
    for (let go = 0; go < MAX_GOES; go += 1) {
      await sleep(source.between(200, 1_200));
      const from = monotonic();
      const injected = await fault.inject(scene, source.branch());
      onRecord({ kind: fault.kind, from, to: monotonic(), ...injected });
      if (injected.effective) break;
    }
  }
}

interface Appointment {
  readonly fault: Fault;
  /** Milliseconds after the beginning, or later if the fault before takes longer. */
  readonly at: number;
  /** A source of its own: what one fault does with it never shifts what the next gets. */
  readonly source: Random;
}

/** Mixed faults are spread evenly over the time; those of a scenario of their own follow each other for as long as it lasts. */
function* timetable({ scenario, faults, forMs }: Plan, random: Random): Generator<Appointment> {
  const rounds = ALL_FAULTS.includes(scenario) ? mixedRounds(forMs) : Number.POSITIVE_INFINITY;
  const everyMs = forMs / (rounds * faults.length);
  const offset = random.next() * everyMs * 0.5;
  for (let round = 0, count = 0; round < rounds; round += 1) {
    for (const fault of random.shuffle(faults)) {
      yield { fault, at: offset + count * everyMs, source: random.branch() };
      count += 1;
    }
  }
}

function mixedRounds(forMs: number): number {
  return Math.max(1, Math.round(forMs / MIXED_ROUND_MS));
}
