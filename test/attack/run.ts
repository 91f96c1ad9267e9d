import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentText, watchStolenTime } from '../../bench/src/machine.js';
import type { Settings } from '../fault/history.js';
import { monotonic } from '../fault/monotonic.js';
import { DatabaseObserver } from '../fault/observers/database-observer.js';
import { Random } from '../fault/random.js';
import type { NodeSlot } from '../fault/rig/node-slot.js';
import { Rig } from '../fault/rig/rig.js';
import type { Attack } from './attack.js';
import { CALM, type Evidence, type Phase } from './evidence.js';
import { judge, type Violation } from './judge.js';
import { Onlooker } from './onlooker.js';
import { Scene } from './scene.js';
import { Sender, type Target } from './sender.js';

export interface RunOptions {
  readonly attacks: readonly Attack[];
  /** All attacks together; each gets an equal part. */
  readonly seconds: number;
  readonly seed: number;
  /** How long nothing is attacked, to know what is usual. */
  readonly calmMs: number;
  readonly say: (line: string) => void;
}

export interface Outcome {
  readonly evidence: Evidence;
  readonly violations: readonly Violation[];
  readonly scenes: ReadonlyMap<string, Scene>;
  /** The share of the machine's time that others took. */
  readonly stolen: string;
  /** Logs of the processes; removed by `discard`. */
  readonly folder: string;
  discard(): Promise<void>;
}

/** What users get when they set nothing. */
const SETTINGS: Settings = {
  ...{ nodes: 2, workers: 1, slots: 20, jobsPerSecond: 0 },
  ...{ workflowsPerSecond: 0, batchesPerSecond: 0, callsPerSecond: 0, programsPerSecond: 0 },
  ...{ leaseTtlMs: 5_000, heartbeatMs: 3_000, workerTimeoutMs: 10_000 },
};
/** What is under way so long after an attack's time is up is given up. */
const GRACE_MS = 10_000;
/** Between two attacks, so that what the first leaves behind is seen under its own name. */
const PAUSE_MS = 1_000;

/** Runs the attacks one after another against a cluster of real processes, and judges what was seen. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { say } = options;
  say(`starting ${SETTINGS.nodes} nodes, a worker and Postgres`);
  const rig = await Rig.open({ settings: SETTINGS, onAnswer: () => undefined, direct: true });
  const database = new DatabaseObserver(rig.postgres);
  const onlooker = new Onlooker(rig.nodes, rig.apiKey);
  const sender = new Sender();
  try {
    const stolen = watchStolenTime();
    await rolesOf(rig, database);
    database.watch();
    const { phases, scenes } = await attackAll(options, rig, database, sender);
    await onlooker.stop();
    await database.stop();
    const { calm, holds, machine, control } = onlooker;
    const evidence: Evidence = {
      ...{ phases, calm, holds, machine, control, deaths: rig.deaths },
      terms: database.leases.filter(({ epoch }, index) => epoch !== database.leases[index - 1]?.epoch),
    };
    const violations = [...[...scenes.values()].flatMap((scene) => scene.violations), ...judge(evidence)];
    return {
      ...{ evidence, violations, scenes, stolen: percentText(stolen()) },
      ...{ folder: rig.folder, discard: () => rig.remove() },
    };
  } finally {
    onlooker.kill();
    await sender.close();
    await rig.close();
  }
}

interface Course {
  readonly phases: readonly Phase[];
  readonly scenes: ReadonlyMap<string, Scene>;
}

async function attackAll(
  { attacks, seconds, seed, calmMs, say }: RunOptions,
  rig: Rig,
  database: DatabaseObserver,
  sender: Sender,
): Promise<Course> {
  const random = new Random(seed);
  const phases: Phase[] = [];
  const scenes = new Map<string, Scene>();
  const begin = monotonic();
  await sleep(calmMs);
  phases.push({ kind: CALM, from: begin, to: monotonic() });
  for (const attack of attacks) {
    const source = random.branch();
    const from = monotonic();
    const forMs = Math.ceil((seconds * 1_000) / attacks.length);
    const times = {
      halfOver: AbortSignal.timeout(Math.ceil(forMs / 2)),
      over: AbortSignal.timeout(forMs),
      abandoned: AbortSignal.timeout(forMs + GRACE_MS),
    };
    // Every request that is under way listens to it.
    setMaxListeners(0, times.abandoned);
    const { leader, follower } = await rolesOf(rig, database);
    const { apiKey, postgres } = rig;
    const scene = new Scene({ attack, sender, leader, follower, apiKey, postgres, ...times });
    scenes.set(attack.kind, scene);
    await attack.run(scene, source);
    await sleep(PAUSE_MS);
    phases.push({ kind: attack.kind, from, to: monotonic() });
    say(progress(attack.kind, scene, monotonic() - from));
  }
  return { phases, scenes };
}

/** Who leads and who follows, when there is a leader; a change of term shows in the judgement. */
async function rolesOf(rig: Rig, database: DatabaseObserver): Promise<{ leader: Target; follower: Target }> {
  const [first, second] = rig.nodes as [NodeSlot, NodeSlot];
  for (;;) {
    const { holder } = await database.lease();
    if (first.member.name === holder) return { leader: first, follower: second };
    if (second.member.name === holder) return { leader: second, follower: first };
    await sleep(50);
  }
}

function progress(
  kind: string,
  { statuses, slowestMs, largestBytes, violations }: Scene,
  ms: number,
): string {
  const answers = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ') || 'no requests';
  const largest = largestBytes > 2 ** 20 ? `, largest answer ${Math.round(largestBytes / 2 ** 20)} MB` : '';
  return `${kind}: ${answers} in ${(ms / 1_000).toFixed(1)} s, slowest ${Math.round(slowestMs)} ms${largest}${violations.length > 0 ? `, ${violations.length} wrong answers` : ''}`;
}
