import { setTimeout as pause } from 'node:timers/promises';
import type { Ledger } from '../ledger.js';
import { now, ticking, until } from '../moments.js';
import { spread } from '../statistics.js';
import type { PunctualSystem } from '../systems/punctual.js';
import type { SliceResult } from './slice.js';
import { allStarted, problemsOf } from './throughput.js';

/** How late jobs start. Due times are whole milliseconds of the wall clock, and so is this. */
export class Lateness {
  readonly late: number[] = [];
  early = 0;
  readonly #dueAt: number[] = [];

  constructor(readonly ledger: Ledger) {}

  expect(first: number, dueAt: readonly number[]): void {
    for (const [i, moment] of dueAt.entries()) this.#dueAt[first + i] = moment;
  }

  start(number: number): void {
    const late = Date.now() - this.#dueAt[number]!;
    if (late < 0) this.early += 1;
    this.late.push(late);
    this.ledger.start(number);
  }
}

/** Jobs are due between half a second and five seconds after their submission, at random. */
const DUE_WITHIN_MS = { least: 500, most: 5_000 } as const;
const BULKS_PER_SECOND = 10;

/** Submits a steady stream of jobs with random due times. */
export async function measurePunctuality(
  system: PunctualSystem,
  lateness: Lateness,
  { seconds, perSecond }: { readonly seconds: number; readonly perSecond: number },
  progress: (text: string) => void,
): Promise<SliceResult> {
  const begin = now();
  const bulk = perSecond / BULKS_PER_SECOND;
  const stopTelling = tellStarts(lateness, progress);
  let submitted = 0;
  for (let tick = 0; tick < seconds * BULKS_PER_SECOND; tick++) {
    await until(begin + (tick * 1_000) / BULKS_PER_SECOND);
    const dueAt = Array.from({ length: bulk }, () =>
      Math.round(
        Date.now() + DUE_WITHIN_MS.least + Math.random() * (DUE_WITHIN_MS.most - DUE_WITHIN_MS.least),
      ),
    );
    lateness.expect(submitted, dueAt);
    submitted += bulk;
    await system.submitDue(submitted - bulk, dueAt);
  }
  await allStarted(lateness.ledger, submitted);
  stopTelling();
  return conclude(system, lateness, submitted, []);
}

const HERD_BULK = 10_000;

/** Submits a herd that is due at one instant, and waits until all of it has started. */
export async function measureHerd(
  system: PunctualSystem,
  lateness: Lateness,
  { jobs, leadSeconds }: { readonly jobs: number; readonly leadSeconds: number },
  progress: (text: string) => void,
): Promise<SliceResult> {
  const instant = Date.now() + leadSeconds * 1_000;
  const stopTelling = tellStarts(lateness, progress);
  for (let first = 0; first < jobs; first += HERD_BULK) {
    const dueAt = new Array<number>(Math.min(HERD_BULK, jobs - first)).fill(instant);
    lateness.expect(first, dueAt);
    await system.submitDue(first, dueAt);
  }
  const spare = instant - Date.now();
  if (spare > 0) await pause(spare);
  await allStarted(lateness.ledger, jobs);
  stopTelling();
  const tooSlow = spare > 0 ? [] : [`the herd was not submitted within ${leadSeconds} s`];
  return conclude(system, lateness, jobs, tooSlow);
}

async function conclude(
  system: PunctualSystem,
  { ledger, late, early }: Lateness,
  submitted: number,
  problems: readonly string[],
): Promise<SliceResult> {
  await system.finish();
  const account = await ledger.account(submitted);
  return {
    ...{ settings: system.settings, submitted, account, delays: late, spread: spread(late), early },
    problems: [
      ...problems,
      ...(early > 0 ? [`${early} jobs started early`] : []),
      ...problemsOf(account),
      ...(await system.check(submitted)),
    ],
  };
}

function tellStarts({ ledger }: Lateness, progress: (text: string) => void): () => void {
  return ticking(1_000, () => progress(`${ledger.started.toLocaleString('en')} started`));
}
