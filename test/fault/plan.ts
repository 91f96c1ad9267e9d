import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Fault, Lane } from './fault.js';
import type { FaultRecord } from './history.js';
import { monotonic } from './monotonic.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

/** The scenario of all faults together. */
export const MIXED = 'mixed';

/** Loads every fault there is. */
export async function loadFaults(): Promise<Fault[]> {
  const folder = join(import.meta.dirname, 'faults');
  const files = readdirSync(folder).filter((name) => /^[a-z-]+\.[jt]s$/.test(name));
  const modules = await Promise.all(
    files.sort().map((name) => import(pathToFileURL(join(folder, name)).href) as Promise<{ fault: Fault }>),
  );
  return modules.map((module) => module.fault);
}

/** The names of all scenarios. */
export function scenariosOf(faults: readonly Fault[]): string[] {
  return [...new Set(faults.map((fault) => fault.scenario)), MIXED];
}

/** The faults of a scenario. */
export function faultsOf(faults: readonly Fault[], scenario: string): Fault[] {
  return scenario === MIXED ? [...faults] : faults.filter((fault) => fault.scenario === scenario);
}

/** Injects faults until the time is up: each lane takes its faults in a random order, again and again. */
export async function inject(
  faults: readonly Fault[],
  scene: Scene,
  random: Random,
  forMs: number,
  onRecord: (record: FaultRecord) => void,
): Promise<void> {
  const until = monotonic() + forMs;
  const lanes = new Set<Lane>(faults.map((fault) => fault.lane));
  await Promise.all(
    [...lanes].map((lane) =>
      runLane(
        faults.filter((fault) => fault.lane === lane),
        scene,
        random.branch(),
        until,
        onRecord,
      ),
    ),
  );
}

async function runLane(
  faults: readonly Fault[],
  scene: Scene,
  random: Random,
  until: number,
  onRecord: (record: FaultRecord) => void,
): Promise<void> {
  let bag: Fault[] = [];
  while (monotonic() < until) {
    if (bag.length === 0) bag = random.shuffle(faults);
    const fault = bag.pop()!;
    await sleep(random.between(200, 1_200));
    const from = monotonic();
    // Each fault draws from a source of its own: what one does with it never shifts what the next gets.
    const injected = await fault.inject(scene, random.branch());
    onRecord({ kind: fault.kind, from, to: monotonic(), ...injected });
  }
}
