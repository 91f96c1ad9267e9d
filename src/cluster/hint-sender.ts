import { earlier } from '../core/clock.js';
import { addAll } from '../core/long-lists.js';
import type { Waiting } from '../store/read-backlog.js';
import type { PeerCaller } from './peer-caller.js';

/** A job that was stored; its task and its workflow are for those who listen to events. */
export type HintedJob = Waiting & { readonly task?: string | null; readonly workflow?: string | null };

/** A workflow that was stored. */
export interface HintedWorkflow {
  readonly id: string;
  readonly tenant: string;
  /** Whether a step of it, on which nothing else depends, waits for a time or starts a workflow. */
  readonly wakes?: boolean | undefined;
}

/** Tells the leader about jobs that were stored. */
export interface Hint {
  readonly jobs: readonly HintedJob[];
  /** The earliest `startBefore` among stored jobs that are not in `jobs`. */
  readonly startBefore: number | null;
  /** Workflows that were stored; a node of an older version leaves them out, or what they wait for. */
  readonly workflows?: readonly HintedWorkflow[];
  /** Whether jobs were stored that wait for artifacts. */
  readonly artifacts?: boolean;
  /** Artifacts that have arrived. */
  readonly arrived?: readonly string[];
}

/** The leader's look-back finds more jobs than this sooner than a call could bring them. */
const MAX_JOBS = 20_000;

/**
 * Tells the leader of a shard of jobs that this node has stored there. Hints make jobs start sooner, and nothing depends on them: a hint
 * that cannot be sent is dropped, because the leader's look-back finds the jobs. Hints that come while a call is in
 * flight are sent together in the next one.
 */
export class HintSender {
  private jobs: HintedJob[] = [];
  private startBefore: number | null = null;
  private workflows: HintedWorkflow[] = [];
  private artifacts = false;
  private arrived: string[] = [];
  private sending = false;

  constructor(
    private readonly peers: PeerCaller,
    private readonly shard: number,
    private readonly leaderUrl: () => string | null,
  ) {}

  send(hint: Hint): void {
    if (this.jobs.length + hint.jobs.length <= MAX_JOBS) addAll(this.jobs, hint.jobs.map(withoutRow));
    this.startBefore = earlier(this.startBefore, hint.startBefore);
    if (this.workflows.length < MAX_JOBS) addAll(this.workflows, hint.workflows ?? []);
    if (hint.artifacts) this.artifacts = true;
    if (this.arrived.length < MAX_JOBS) addAll(this.arrived, hint.arrived ?? []);
    if (!this.sending) void this.flush();
  }

  private hasNews(): boolean {
    const told = this.jobs.length + this.workflows.length + this.arrived.length;
    return told > 0 || this.startBefore !== null || this.artifacts;
  }

  private async flush(): Promise<void> {
    this.sending = true;
    while (this.hasNews()) {
      const { jobs, startBefore, workflows, artifacts, arrived } = this;
      const hint: Hint = {
        ...{ jobs, startBefore, ...(workflows.length > 0 && { workflows }) },
        ...(artifacts && { artifacts }),
        ...(arrived.length > 0 && { arrived }),
      };
      this.jobs = [];
      this.workflows = [];
      this.startBefore = null;
      this.artifacts = false;
      this.arrived = [];
      const url = this.leaderUrl();
      if (url !== null) await this.peers.post(url, '/internal/hints', hint, this.shard);
    }
    this.sending = false;
  }
}

/** Only what the leader needs to choose jobs and to tell of them; its claim reads the rest. */
function withoutRow({ row, ...job }: Waiting): HintedJob {
  return { ...job, task: row?.definition.task ?? null, ...(row?.workflow && { workflow: row.workflow }) };
}
