import type { JobDefinition } from '../core/submission.js';
import { uuidv7 } from '../core/uuid.js';
import type { ParsedAddition } from '../core/workflow/parse-workflow.js';
import type { Draft } from '../store/add-steps.js';
import type { StoredDefinition } from '../store/job-row.js';
import type { Resolved } from '../store/names.js';
import { stepOf, storedOf, type WorkflowOwner } from '../store/new-workflow.js';

/** Steps that are to be added to a workflow, with new ids; what they wait for is known when they are added. */
export function draftSteps<S extends ParsedAddition>(
  workflow: string,
  steps: readonly S[],
  owner: WorkflowOwner,
  resolved: readonly Resolved[],
  now: number,
  laterThreshold: number,
): (S & Draft)[] {
  // Steps that share their definition share what is stored of it, too.
  const stored = {
    blocked: new Map<JobDefinition, StoredDefinition>(),
    free: new Map<JobDefinition, StoredDefinition>(),
  };
  return steps.map((step, i) => {
    const id = uuidv7(now);
    const make = (blocked: boolean) => {
      const known = blocked ? stored.blocked : stored.free;
      const definition = known.get(step.definition) ?? storedOf(step, blocked, owner, resolved[i]!);
      known.set(step.definition, definition);
      const row = { id, payload: step.payload, definition, workflow };
      return stepOf(step, row, blocked, { now, laterThreshold, dueAt: undefined });
    };
    return { ...step, id, make };
  });
}
