import { setTimeout as sleep } from 'node:timers/promises';
import { BatchLoad } from './batch-load.js';
import { CallLoad } from './call-load.js';
import { check, loadInvariants, type Violation } from './checker.js';
import type { Fault } from './fault.js';
import type {
  Aftermath,
  CallReport,
  FaultRecord,
  History,
  JobRecord,
  ReportAnswer,
  Settings,
} from './history.js';
import { Load } from './load.js';
import { monotonic } from './monotonic.js';
import { Client } from './observers/client.js';
import { DatabaseObserver } from './observers/database-observer.js';
import { EffectFiles } from './observers/effect-files.js';
import { MemoryObserver } from './observers/memory-observer.js';
import { StaleProber } from './observers/stale-prober.js';
import { hasSchedules, inject, wantedOfEach } from './plan.js';
import { ProgramLoad } from './program-load.js';
import { Random } from './random.js';
import { Rig } from './rig/rig.js';
import { Scene } from './scene.js';
import { SCHEDULED_ORDER, ScheduleLoad } from './schedule-load.js';
import { WorkflowLoad } from './workflow-load.js';

export interface RunOptions {
  readonly scenario: string;
  readonly faults: readonly Fault[];
  readonly seconds: number;
  readonly seed: number;
  readonly settings: Settings;
  /** Environment of all nodes and workers, such as a fence that is switched off. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly pace?: Pace;
  /** Takes one line now and then about how far the run is. */
  readonly say: (line: string) => void;
}

export interface Outcome {
  readonly history: History;
  readonly violations: readonly Violation[];
  /** Logs of the processes; removed by `discard`. */
  readonly folder: string;
  discard(): Promise<void>;
}

/** The times around the faults. */
export interface Pace {
  /** How long everything goes well before the first fault, and is looked at after the last. */
  readonly calmMs: number;
  /** How long the scheduler gets to notice that everything is well again; null for its lease and worker timeout. */
  readonly settleMs: number | null;
  /** How long it may take until as much starts as before. */
  readonly recoverMs: number;
  /** How long jobs may take to end when nothing is broken any more. */
  readonly drainMs: number;
}

const USUAL_PACE: Pace = { calmMs: 3_000, settleMs: null, recoverMs: 30_000, drainMs: 60_000 };
/** The share of the usual rate that counts as recovered; chance alone moves the rate by some percent. */
const RECOVERED_SHARE = 0.95;
const TELL_EVERY_MS = 5_000;
/** When more waits than is ordered in this time, the load holds back. */
const MAX_BACKLOG_SECONDS = 30;
const REPORTED_WITHIN_MS = 15_000;

/** Runs a scenario: calm, faults under load, calm again, drain; then judges what the observers saw. */
export async function run(options: RunOptions): Promise<Outcome> {
  const answers: ReportAnswer[] = [];
  const { settings, environment = {}, say } = options;
  say(`starting ${settings.nodes} nodes, ${settings.workers} workers and Postgres`);
  const rig = await Rig.open({ settings, environment, onAnswer: (answer) => answers.push(answer) });
  try {
    const history = await new Run(options, rig, answers).history();
    say(`checking ${history.jobs.length} jobs`);
    const violations = [...check(history, await loadInvariants()), ...withoutEffect(options, history)];
    return { history, violations, folder: rig.folder, discard: () => rig.remove() };
  } finally {
    await rig.close();
  }
}

/** What a receiver was told, in the form of what workers are told; nothing if it was neither taken nor refused as stale. */
function toAnswer({ job, fence, outcome, status, at }: CallReport): ReportAnswer[] {
  if (status === 204) return [{ job, fence, outcome, verdict: 'accepted', at }];
  return status === 409 ? [{ job, fence, outcome, verdict: 'stale', at }] : [];
}

/** Faults that were not seen to take effect often enough: they have proven nothing. */
function withoutEffect({ scenario, faults, seconds }: RunOptions, history: History): Violation[] {
  const wanted = wantedOfEach(scenario, seconds);
  return faults.flatMap(({ kind }) => {
    const count = history.faults.filter((record) => record.kind === kind && record.effective).length;
    const detail = `${kind} took effect ${count} times instead of ${wanted}`;
    return count < wanted ? [{ invariant: 'faults-take-effect', detail, job: null }] : [];
  });
}

/** One run, with its observers. */
class Run {
  private readonly random: Random;
  private readonly client: Client;
  private readonly database: DatabaseObserver;
  private readonly effects: EffectFiles;
  private readonly prober: StaleProber;
  private readonly memory: MemoryObserver;
  private readonly load: Load;
  private readonly workflows: WorkflowLoad;
  private readonly batches: BatchLoad;
  private readonly calls: CallLoad;
  private readonly programs: ProgramLoad;
  private readonly faults: FaultRecord[] = [];
  private readonly pace: Pace;
  private telling = true;
  private phase = 'warming up';

  constructor(
    private readonly options: RunOptions,
    private readonly rig: Rig,
    private readonly answers: readonly ReportAnswer[],
  ) {
    this.pace = options.pace ?? USUAL_PACE;
    this.random = new Random(options.seed);
    this.client = new Client(() => rig.nodes.map((node) => node.url), rig.apiKey);
    this.database = new DatabaseObserver(rig.postgres);
    this.effects = new EffectFiles(rig.folder);
    this.prober = new StaleProber(this.client, this.effects);
    this.memory = new MemoryObserver(() => rig.nodes.map(({ member }) => member));
    const { jobsPerSecond, workflowsPerSecond, batchesPerSecond, callsPerSecond, programsPerSecond } =
      options.settings;
    const isTooMuch = () => this.database.waiting > jobsPerSecond * MAX_BACKLOG_SECONDS;
    this.load = new Load(this.client, this.random.branch(), jobsPerSecond, isTooMuch);
    const { client, load, random } = this;
    this.workflows = new WorkflowLoad(client, load, random.branch(), workflowsPerSecond, isTooMuch);
    this.batches = new BatchLoad(client, load, random.branch(), batchesPerSecond, isTooMuch);
    const origins = rig.sink?.origins ?? [];
    this.calls = new CallLoad(client, load, random.branch(), origins, callsPerSecond, isTooMuch);
    this.programs = new ProgramLoad(client, load, random.branch(), rig.folder, programsPerSecond, isTooMuch);
  }

  async history(): Promise<History> {
    const { scenario, seed, settings, faults, seconds } = this.options;
    const scene = new Scene(this.rig, this.database, this.client, this.effects, this.load);
    await this.database.install();
    this.database.watch();
    void this.memory.watch();
    const loadBegin = monotonic();
    const schedules = hasSchedules(scenario) ? new ScheduleLoad(this.client, this.database) : null;
    await schedules?.start();
    const loads = [this.load, this.workflows, this.batches, this.calls, this.programs];
    for (const load of loads) load.start();
    this.prober.start();
    void this.tell();
    const rateBefore = await this.warmRate();
    this.phase = 'faults';
    await inject({ scenario, faults, forMs: seconds * 1_000 }, scene, this.random.branch(), (record) => {
      this.faults.push(record);
      if (!record.effective) this.options.say(`no effect: ${record.kind}, ${record.detail}`);
    });
    this.rig.heal();
    this.phase = 'recovering';
    await this.settle();
    const rateAfter = await this.recoveredRate(rateBefore);
    const loadSeconds = (monotonic() - loadBegin) / 1_000;
    await Promise.all([...[...loads, this.prober].map((load) => load.stop()), schedules?.stop()]);
    await this.client.cancelUnservable();
    await this.drained();
    await schedules?.drained();
    await this.reported();
    const aftermath = await this.aftermath(rateBefore, rateAfter);
    this.telling = false;
    this.memory.stop();
    // What was answered before the tables are read must be in them; what a handler did before, too.
    const callReports = this.rig.sink?.reports() ?? [];
    const answers = [...this.answers, ...callReports.flatMap(toAnswer)];
    const [audit, jobs] = [await this.database.audit(), await this.database.jobs()];
    const [workflows, batches] = await this.records(jobs);
    const records = (await schedules?.records()) ?? [];
    const scheduled = new Set(records.flatMap((record) => record.jobs.map(({ id }) => id)));
    await this.database.stop();
    await this.client.close();
    this.effects.look();
    this.effects.close();
    return {
      ...{ scenario, seed, settings, audit, jobs, aftermath },
      submissions: this.client.submissions,
      effects: this.effects.all.filter(({ n }) => n !== SCHEDULED_ORDER),
      faults: this.faults,
      answers,
      probes: this.prober.probes.filter(({ job }) => !scheduled.has(job)),
      ...{ schedules: records, workflows, batches, callReports },
      leases: this.database.leases,
      deaths: this.rig.deaths,
      memory: this.memory.peaks,
      orphans: this.rig.runningPrograms(),
      load: { seconds: loadSeconds, heldBackSeconds: this.load.heldBackMs / 1_000 },
    };
  }

  /** What is on record of workflows and batches. */
  private async records(jobs: readonly JobRecord[]) {
    const numbers = new Map(jobs.map(({ id, n }) => [id, n]));
    const workflows = await this.workflows.records(this.database);
    const batches = await this.batches.records(this.database, (job) => numbers.get(job));
    return [workflows, batches] as const;
  }

  /** Starts a second while nothing is done to the cluster, counted by the time of the starts themselves. */
  private async calmRate(): Promise<number> {
    const from = monotonic();
    await sleep(this.pace.calmMs);
    const to = monotonic();
    await sleep(200);
    this.effects.look();
    const starts = this.effects.all.filter(({ kind, at }) => kind === 'start' && at >= from && at < to);
    return starts.length / ((to - from) / 1_000);
  }

  /**
   * The rate before the first fault, once the cluster keeps up with the load. On a machine that is busy with other
   * things it may never: then lateness and lost workers would say nothing about the scheduler.
   */
  private async warmRate(): Promise<number> {
    const wanted = this.options.settings.jobsPerSecond * RECOVERED_SHARE;
    const deadline = monotonic() + this.pace.recoverMs;
    for (;;) {
      const rate = await this.calmRate();
      // What had waited for the first worker starts in a burst; only the steady rate can come back.
      if (rate >= wanted) return Math.min(rate, this.options.settings.jobsPerSecond);
      if (monotonic() > deadline) {
        this.options.say(`this machine is too busy for the load: ${Math.round(rate)} starts a second`);
        return rate;
      }
    }
  }

  /** The rate as soon as it is back, or what it has come to when the time is up. */
  private async recoveredRate(rateBefore: number): Promise<number> {
    const deadline = monotonic() + this.pace.recoverMs;
    for (;;) {
      const rate = await this.calmRate();
      if (rate >= rateBefore * RECOVERED_SHARE || monotonic() > deadline) return rate;
    }
  }

  /** Gives the scheduler the time that it may take to notice that everything is well again. */
  private async settle(): Promise<void> {
    const { leaseTtlMs, workerTimeoutMs } = this.options.settings;
    await sleep(this.pace.settleMs ?? leaseTtlMs + workerTimeoutMs);
  }

  /** A backlog that faults have built up takes its time; only one that no longer shrinks is given up. */
  private async drained(): Promise<void> {
    let least = Number.POSITIVE_INFINITY;
    let shrankAt = monotonic();
    while (monotonic() - shrankAt < this.pace.drainMs) {
      const left = await this.database.unfinished();
      if (left === 0) return;
      this.phase = `draining, ${left} jobs left`;
      if (left < least) shrankAt = monotonic();
      least = Math.min(least, left);
      await sleep(100);
    }
  }

  /** Waits until the sink has its answer to every report, so that what it was told can be compared with the tables. */
  private async reported(): Promise<void> {
    const { sink } = this.rig;
    const deadline = monotonic() + REPORTED_WITHIN_MS;
    while (sink && monotonic() < deadline && (await sink.state()).pending > 0) await sleep(100);
  }

  private async aftermath(rateBefore: number, rateAfter: number): Promise<Aftermath> {
    const lease = await this.database.lease();
    return {
      leaders: lease.expired ? [] : [lease.holder],
      liveNodes: this.rig.nodes.filter(({ member }) => member.isAlive).map(({ member }) => member.name),
      claims: await this.database.claims(),
      ...{ rateBefore, rateAfter },
    };
  }

  private async tell(): Promise<void> {
    const begin = monotonic();
    let seen = 0;
    while (this.telling) {
      await sleep(TELL_EVERY_MS, undefined, { ref: false });
      if (!this.telling) return;
      const seconds = Math.round((monotonic() - begin) / 1_000);
      this.effects.look();
      const starts = this.effects.starts - seen;
      seen += starts;
      const epoch = this.database.leases.at(-1)?.epoch ?? 0;
      this.options.say(
        `${seconds} s: ${this.phase}; ${this.load.ordered} jobs ordered, ${this.database.waiting} wait, ${seen} starts (${Math.round((starts * 1_000) / TELL_EVERY_MS)} a second), ${this.faults.length} faults, epoch ${epoch}`,
      );
    }
  }
}
