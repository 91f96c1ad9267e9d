import { type FieldError, invalid } from './errors.js';
import { PayloadSchema } from './payload-schema.js';
import { TaskDefinition as Form } from './schemas/task.js';
import { readFields } from './schemas/validate.js';
import { completeSubmission, type SubmissionContext } from './submission.js';
import type { TaskRules } from './task-defaults.js';
import { MAX_TASK_BYTES, normaliseTask, type TaskDefinition } from './task-definition.js';

/**
 * From what a user wrote about a task to a definition that can be stored and applied. The schema that the documentation
 * shows checks the form; the rules between fields are those of a submission that says the same.
 */

/** Checks a definition; throws INVALID_REQUEST with a pointer to every wrong field. */
export function parseTask(name: string, input: unknown, context: SubmissionContext): TaskDefinition {
  const errors: FieldError[] = [];
  const fields = readFields(Form, input, '', errors);
  if (!fields) throw invalid(errors);
  if (fields.payloadSchema !== undefined) PayloadSchema.read(fields.payloadSchema, '/payloadSchema', errors);
  const definition = normaliseTask(fields);
  checkRules(name, definition, context, errors);
  if (Buffer.byteLength(JSON.stringify(definition)) > MAX_TASK_BYTES)
    errors.push({ pointer: '', detail: `a definition must be at most ${MAX_TASK_BYTES} bytes as JSON` });
  if (errors.length > 0) throw invalid(errors);
  return definition;
}

/** Checks the rules between fields, as for a job that says everything itself. */
function checkRules(
  name: string,
  { target, queue, priority, retry, timeout, delivery, requires }: TaskDefinition,
  { tasks: _, ...context }: SubmissionContext,
  errors: FieldError[],
): void {
  const what = target ? { target } : { task: name };
  const said = Object.entries({ queue, priority, retry, timeout, delivery, requires });
  const job = { ...what, ...Object.fromEntries(said.filter(([, value]) => value !== undefined)) };
  completeSubmission(job, job, context, { pointer: '', errors });
}

/** A payload cannot be checked by rules that this version of the program does not know. */
const NOT_UNDERSTOOD: TaskRules['payloadSchema'] = {
  check: (_, pointer, errors) => {
    errors.push({
      pointer,
      detail: 'cannot be checked: this node does not understand the schema of the task',
    });
  },
};

/** The rules of a stored definition, which was checked when it was stored. */
export function rulesOfStored(name: string, text: string): TaskRules {
  const definition = normaliseTask(JSON.parse(text));
  const { concurrencyKey: key, payloadSchema: schema } = definition;
  return {
    name,
    definition,
    keyPath: typeof key === 'object' ? key.path.split('.') : null,
    payloadSchema: schema === undefined ? null : (PayloadSchema.read(schema, '', []) ?? NOT_UNDERSTOOD),
  };
}
