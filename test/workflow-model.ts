import type { EndState } from '../src/core/job.js';
import { decideStep, weightOf } from '../src/core/workflow/run-if.js';
import type { FailurePolicy, RunIf } from '../src/core/workflow.js';
import type { Draft } from '../src/store/add-steps.js';
import type { GraphStepRow } from '../src/store/reopen-steps.js';
import type {
  EndedWorkflow,
  PendingEnd,
  Portion,
  ReadPortion,
  ReadWorkflow,
  StepCounts,
} from '../src/store/workflow-portions.js';
import { planAddition } from '../src/workflow/plan-addition.js';
import { planReopening } from '../src/workflow/plan-reopening.js';

/** The tables of one workflow in memory, which are read and written as the statements of the store do it. */

/** A step of a random graph; `fails` says how its job ends if it runs. */
export interface ModelStep {
  readonly id: string;
  readonly parents: readonly string[];
  readonly runIf: RunIf;
  readonly fails: boolean;
}

const WORKFLOW = 'w';

export class ModelShard {
  readonly steps = new Map<string, { -readonly [K in keyof StepCounts]: StepCounts[K] }>();
  readonly blocked = new Set<string>();
  readonly live = new Set<string>();
  readonly outbox = new Map<string, PendingEnd>();
  /** In the order in which they began to run. */
  readonly ran: string[] = [];
  readonly ends = new Map<string, EndState>();
  readonly over: EndedWorkflow['state'][] = [];
  private readonly children = new Map<string, string[]>();
  private readonly mended = new Set<string>();
  private stepsLeft: number;
  private failed = 0;
  stopping: ReadWorkflow['stopping'] = null;

  /** With the steps that were added, and with these among the parents of those that joined. */
  readonly graph: ModelStep[];

  constructor(
    graph: readonly ModelStep[],
    private readonly onFailure: FailurePolicy,
  ) {
    this.graph = [...graph];
    this.stepsLeft = graph.length;
    for (const { id, parents, runIf } of graph) {
      const isRoot = parents.length === 0;
      const counts = { parents: parents.length, parentsLeft: parents.length, ok: 0, bad: 0 };
      const rest = { outcome: null, delayMs: 0, wait: null, inner: false, refers: false };
      this.steps.set(id, { id, runIf, ...counts, released: isRoot, ...rest });
      (isRoot ? this.live : this.blocked).add(id);
      for (const parent of parents) this.children.set(parent, [...(this.children.get(parent) ?? []), id]);
    }
    for (const theirs of this.children.values()) theirs.sort();
  }

  /** The steps that wait for a step and are not decided about. */
  undecidedChildren(id: string): string[] {
    return (this.children.get(id) ?? []).filter((child) => {
      const { released, outcome } = this.steps.get(child)!;
      return !released && outcome === null;
    });
  }

  /** Adds steps as the statement does; to be called when every end is counted. */
  add(added: readonly ModelStep[], joiners: readonly string[]): void {
    const known = new Map(
      [...this.steps.values()].map(({ id, outcome, bad }) => [
        id,
        { id, name: id, outcome, bad, addedBy: null },
      ]),
    );
    const drafts = added.map(
      ({ id, parents, runIf }): Draft => ({
        ...{ id, name: id, runIf, delayMs: 0, wait: null, inner: null, refers: false, after: parents },
        make: (blocked) => ({ row: { id }, blocked }) as ReturnType<Draft['make']>,
      }),
    );
    const plan = planAddition(drafts, { known, joiners, lastPlace: 0, events: new Set() }, 0);
    for (const { row, blocked, parents, parentsLeft, ok, bad, released } of plan.steps) {
      const { id, runIf } = added.find((step) => step.id === row.id)!;
      const rest = { outcome: null, delayMs: 0, wait: null, inner: false, refers: false };
      this.steps.set(id, { id, runIf, parents, parentsLeft, ok, bad, released, ...rest });
      (blocked ? this.blocked : this.live).add(id);
    }
    for (const [i, parent] of plan.edges.parents.entries()) {
      const children = [...(this.children.get(parent) ?? []), plan.edges.children[i]!];
      this.children.set(parent, children.sort());
    }
    for (const id of joiners) {
      const step = this.steps.get(id)!;
      step.parents += added.length;
      step.parentsLeft += added.length;
      const place = this.graph.findIndex((each) => each.id === id);
      const joined = this.graph[place]!;
      this.graph[place] = { ...joined, parents: [...joined.parents, ...added.map((each) => each.id)] };
    }
    this.graph.push(...added);
    this.stepsLeft += added.length;
    for (const { id, state } of plan.skipped) this.endBlocked(id, state);
  }

  /** The steps with every one behind its parents. */
  inOrder(): ModelStep[] {
    const placed = new Set<string>();
    const order: ModelStep[] = [];
    while (order.length < this.graph.length) {
      const next = this.graph.filter(
        ({ id, parents }) => !placed.has(id) && parents.every((parent) => placed.has(parent)),
      );
      if (next.length === 0) throw new Error('the steps wait for each other');
      for (const step of next) placed.add(step.id);
      order.push(...next);
    }
    return order;
  }

  /** Runs a live job to its end. */
  finish(id: string): void {
    if (!this.live.delete(id)) throw new Error(`${id} is not live`);
    this.ran.push(id);
    const fails = this.graph.find((step) => step.id === id)!.fails && !this.mended.has(id);
    this.end(id, fails ? 'failed' : 'succeeded');
  }

  /** Ends a blocked job, as a cancel or an expiry does. */
  endBlocked(id: string, state: EndState): void {
    if (this.blocked.delete(id)) this.end(id, state);
  }

  private end(id: string, state: EndState): void {
    if (this.ends.has(id)) throw new Error(`${id} ended twice`);
    this.ends.set(id, state);
    this.outbox.set(id, { job: id, workflow: WORKFLOW, state, finishedAt: 0, place: null });
  }

  read(ends: readonly PendingEnd[], limit: number): ReadPortion {
    const edges = ends.flatMap(({ job, place }, i) =>
      (this.children.get(job) ?? [])
        .filter((child) => place === null || child > place)
        .map((child) => ({ n: i + 1, child: { ...this.steps.get(child)! } })),
    );
    const sources = ends.flatMap(({ job: id }) => {
      const { bad } = this.steps.get(id)!;
      return bad > 0 ? [{ id, bad, innerRunning: null }] : [];
    });
    const { onFailure, stopping, stepsLeft, failed } = this;
    const workflow: ReadWorkflow = {
      ...{ id: WORKFLOW, tenant: 't', onFailure, stopping, stepsLeft, failed, held: false },
      ...{ outerStep: null, outerWorkflow: null },
    };
    return { edges: edges.slice(0, limit), sources, workflows: [workflow] };
  }

  /** Lets steps run again as the statement does; they succeed then. */
  reopen(chosen: ReadonlySet<string>): void {
    const rows = this.graph.map(({ id, runIf }): GraphStepRow => {
      const { outcome, released } = this.steps.get(id)!;
      const rest = {
        wait: null,
        inner: false,
        refers: false,
        addedBy: null,
        hasHistory: true,
        ranOnce: false,
      };
      return { id, name: id, runIf, outcome, finishedAt: outcome === null ? null : 1, released, ...rest };
    });
    const edges = this.graph.flatMap(({ id, parents }) => parents.map((parent) => ({ parent, child: id })));
    const plan = planReopening(
      rows,
      edges,
      { chosen, withDescendants: false, withSkipped: false },
      new Set(),
      0,
    );
    for (const { id, finishedAt, parentsLeft, ok, bad, released, blocked } of plan.steps) {
      Object.assign(this.steps.get(id)!, { parentsLeft, ok, bad, released, outcome: null });
      if (finishedAt === null) continue;
      this.ends.delete(id);
      this.mended.add(id);
      (blocked ? this.blocked : this.live).add(id);
    }
    this.stepsLeft = plan.stepsLeft;
    this.failed = plan.failed;
  }

  /** Answers whether the ends were still there; if not, nothing is done. */
  apply(portion: Portion): boolean {
    const { counted, partly, steps, released, ended, workflows } = portion;
    const own = [...counted, ...(partly ? [partly.job] : [])];
    if (!own.every((job) => this.outbox.has(job))) return false;
    for (const job of counted) this.outbox.delete(job);
    if (partly) this.outbox.set(partly.job, { ...this.outbox.get(partly.job)!, place: partly.place });
    for (const { id, parentsLeft, ok, bad, released: isReleased, outcome } of steps) {
      const row = this.steps.get(id)!;
      row.parentsLeft = parentsLeft ?? row.parentsLeft;
      row.ok = ok ?? row.ok;
      row.bad = bad ?? row.bad;
      row.released = isReleased ?? row.released;
      row.outcome = outcome ?? row.outcome;
    }
    for (const { id } of released) if (this.blocked.delete(id)) this.live.add(id);
    for (const { id, state } of ended) this.endBlocked(id, state);
    for (const { stepsEnded, stepsFailed, stopping } of workflows) {
      this.stepsLeft -= stepsEnded;
      this.failed += stepsFailed;
      this.stopping ??= stopping;
      if (this.stepsLeft === 0) this.over.push(this.failed > 0 ? 'failed' : 'succeeded');
    }
    return true;
  }
}

/** How every step must end if a failure stops nothing: from parents to children, without any counter. */
export function expectedEnds(graph: readonly ModelStep[]): Map<string, EndState> {
  const ends = new Map<string, EndState>();
  const bads = new Map<string, number>();
  for (const { id, parents, runIf, fails } of graph) {
    const weights = parents.map((parent) => weightOf(ends.get(parent)!, bads.get(parent)!));
    const ok = weights.filter((weight) => weight === 'ok').length;
    const bad = weights.filter((weight) => weight === 'bad').length;
    const runs = parents.length === 0 || decideStep({ runIf, parents: parents.length, ok, bad }) === 'run';
    bads.set(id, bad);
    ends.set(id, runs ? (fails ? 'failed' : 'succeeded') : 'skipped');
  }
  return ends;
}
