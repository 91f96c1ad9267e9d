import type { AddedSteps, ListedWorkflow, Workflow, WorkflowStepView } from '../core/workflow.js';
import type { EdgeRow, NamedStepRow, StepRow, WorkflowRow } from '../store/read-workflows.js';
import type { NewWorkflow } from '../store/submit-workflow.js';
import { JsonText } from './json-text.js';

/** A workflow as the API shows it; its text is made when it is read. */
export class WorkflowText extends JsonText {
  constructor(
    private readonly row: WorkflowRow,
    private readonly steps: readonly StepRow[],
    private readonly edges: readonly EdgeRow[],
  ) {
    super();
  }

  get text(): string {
    const names = new Map(this.steps.map(({ id, name }) => [id, name]));
    const parents = new Map<string, string[]>();
    for (const { parent, child } of this.edges) {
      const name = names.get(parent)!;
      const known = parents.get(child);
      if (known) known.push(name);
      else parents.set(child, [name]);
    }
    const jobs: Record<string, WorkflowStepView> = {};
    for (const step of this.steps) {
      const addedBy = step.added_by === null ? null : (names.get(step.added_by) ?? null);
      jobs[step.name] = stepView(step, parents.get(step.id) ?? [], addedBy);
    }
    const workflow: Workflow = { ...listedWorkflow(this.row), jobs };
    return JSON.stringify(workflow);
  }
}

/** Steps that were added to a workflow. */
export function addedSteps(workflow: string, steps: readonly NamedStepRow[]): AddedSteps {
  const jobs = steps.map((step) => [step.name, stepView(step, step.after, step.adder)] as const);
  return { workflow, jobs: Object.fromEntries(jobs) };
}

function stepView(step: StepRow, after: readonly string[], addedBy: string | null): WorkflowStepView {
  const { id, state, run_if: runIf, finished_at } = step;
  return { id, state, after, runIf, addedBy, finishedAt: maybeTime(finished_at) };
}

/** A workflow without its steps. */
export function listedWorkflow(row: WorkflowRow): ListedWorkflow {
  const { id, tenant, name, key, state, run, stopping, held, steps, steps_left, failed } = row;
  return {
    ...{ id, tenant, name, key, definition: usedDefinition(row.definition, row.definition_version) },
    ...{ schedule: row.schedule, scheduledAt: maybeTime(row.occurrence) },
    ...{ state, run, onFailure: row.on_failure, running: row.running, stopping },
    ...{ held, rerunOf: row.rerun_of },
    progress: { steps, ended: steps - steps_left, failed },
    createdAt: time(row.created_at),
    createdBy: row.created_by,
    endedAt: maybeTime(row.ended_at),
  };
}

/** A new workflow is as it was stored, whatever has become of it since. */
export function viewOfNew(workflow: NewWorkflow): Workflow {
  const { id, tenant, name, key, onFailure, running, steps, edges, createdAt, createdBy } = workflow;
  const { definition, scheduled } = workflow;
  const after = steps.map((): string[] => []);
  for (const [i, parent] of edges.parents.entries()) after[edges.children[i]!]!.push(steps[parent]!.name);
  return {
    ...{ id, tenant, name, key, definition, schedule: scheduled?.schedule ?? null },
    scheduledAt: maybeTime(scheduled?.occurrence ?? null),
    ...{ state: 'running', run: 1, onFailure, running, stopping: null },
    ...{ held: false, rerunOf: workflow.rerunOf },
    progress: { steps: steps.length, ended: 0, failed: 0 },
    createdAt: time(createdAt),
    createdBy,
    endedAt: null,
    jobs: Object.fromEntries(
      steps.map(({ name: step, row, blocked, runIf }, i): [string, WorkflowStepView] => [
        step,
        {
          ...{ id: row.id, state: blocked ? 'blocked' : 'pending', after: after[i]!, runIf },
          ...{ addedBy: null, finishedAt: null },
        },
      ]),
    ),
  };
}

function usedDefinition(name: string | null, version: number | null): ListedWorkflow['definition'] {
  return name === null || version === null ? null : { name, version };
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

function maybeTime(ms: number | null): string | null {
  return ms === null ? null : time(ms);
}
