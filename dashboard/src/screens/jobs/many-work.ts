import { signal } from '@preact/signals';
import type {
  JobFilter,
  ManyJobsAnswer,
  ManyJobsRequest,
  ManyVerb,
  RefusedJob,
} from '../../../../src/core/wire.js';
import { call } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';

/** A change of many jobs: they are counted first, and then changed in parts, each a request that does a bounded amount. */

/** Which jobs: some by their ids, or all that a filter finds. */
export type Choice = { readonly ids: readonly string[] } | { readonly filter: JobFilter };

/** `broken` after a request that failed: what was done stays, and the work may be gone on with. */
type Phase = 'counting' | 'counted' | 'working' | 'stopped' | 'broken' | 'done';

/** A dry run counts in parts, too; with so many jobs, how many more there are makes no difference. */
const MOST_COUNTED = 2_000_000;
/** Parts grow or shrink so that one takes about so long: to show how far it is, and to stop soon. */
const PART_MS = 400;
const LEAST_PART = 250;
const MOST_PART = 10_000;
/** Jobs that were not changed, of which so many are shown. */
const MOST_REFUSED = 100;

const BACK: Readonly<Partial<Record<ManyVerb, ManyVerb>>> = { hold: 'release', release: 'hold' };

export class ManyWork {
  readonly phase = signal<Phase>('counting');
  /** How many jobs the dry run has counted. */
  readonly matched = signal(0);
  /** Whether these are all of them. */
  readonly isCounted = signal(false);
  /** How many were looked at, and how many of them were changed. */
  readonly tried = signal(0);
  readonly changed = signal(0);
  readonly refused = signal<readonly RefusedJob[]>([]);
  readonly refusedCount = signal(0);
  readonly problem = signal<Problem | null>(null);
  private after: string | null = null;
  private isStopping = false;
  private part = LEAST_PART;

  constructor(
    readonly verb: ManyVerb,
    readonly choice: Choice,
  ) {}

  /** The path and the body of the first request, for those who want to send it by themselves. */
  get request(): { readonly path: string; readonly body: ManyJobsRequest } {
    const isAll = 'filter' in this.choice && Object.keys(this.choice.filter).length === 0;
    return { path: `/v1/jobs/${this.verb}`, body: isAll ? { all: true } : this.choice };
  }

  /** Counts the jobs, which changes nothing. */
  async count(): Promise<void> {
    let after: string | null = null;
    try {
      do {
        const answer: ManyJobsAnswer = await this.ask({ dryRun: true, ...(after !== null && { after }) });
        this.matched.value += answer.matched;
        this.note(answer.refused);
        after = answer.next;
      } while (after !== null && this.matched.value < MOST_COUNTED && !this.isStopping);
      this.isCounted.value = after === null;
      if (!this.isStopping) this.phase.value = 'counted';
    } catch (error) {
      this.fail(error);
    }
  }

  /** Changes the jobs, or goes on with those that are left. */
  async carryOut(): Promise<void> {
    this.phase.value = 'working';
    this.problem.value = null;
    this.isStopping = false;
    if (this.after === null) this.forgetRefused();
    try {
      do {
        const answer = await this.changePart();
        this.tried.value += answer.matched;
        this.changed.value += answer.changed;
        this.note(answer.refused);
        this.after = answer.next;
      } while (this.after !== null && !this.isStopping);
      this.phase.value = this.after === null ? 'done' : 'stopped';
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * What takes it back; null where nothing does. Jobs that were on hold before were refused, so that only what was changed is
   * changed again; of jobs that a filter finds, nobody knows which these were.
   */
  get undo(): ManyWork | null {
    const back = BACK[this.verb];
    const isKnown = this.refused.value.length === this.refusedCount.value;
    if (back === undefined || !('ids' in this.choice) || !isKnown || this.changed.value === 0) return null;
    const refused = new Set(this.refused.value.map(({ id }) => id));
    return new ManyWork(back, { ids: this.choice.ids.filter((id) => !refused.has(id)) });
  }

  /** Ends after the part that is under way. */
  stop(): void {
    this.isStopping = true;
  }

  private async changePart(): Promise<ManyJobsAnswer> {
    const begin = performance.now();
    const { after } = this;
    const answer = await this.ask({ limit: this.part, ...(after !== null && { after }) });
    const isQuick = performance.now() - begin < PART_MS;
    this.part = isQuick
      ? Math.min(MOST_PART, 2 * this.part)
      : Math.max(LEAST_PART, Math.floor(this.part / 2));
    return answer;
  }

  private ask(rest: Partial<ManyJobsRequest>): Promise<ManyJobsAnswer> {
    const { path, body } = this.request;
    return call<ManyJobsAnswer>('POST', path, { body: { ...body, ...rest } });
  }

  private note(refused: readonly RefusedJob[]): void {
    if (refused.length === 0) return;
    this.refusedCount.value += refused.length;
    this.refused.value = [...this.refused.value, ...refused].slice(0, MOST_REFUSED);
  }

  private forgetRefused(): void {
    this.refused.value = [];
    this.refusedCount.value = 0;
  }

  private fail(error: unknown): void {
    this.phase.value = 'broken';
    const problem = asProblem(error);
    if (problem) this.problem.value = problem;
  }
}
