import { createHash } from 'node:crypto';
import { JsonText, readLargeJsonText } from '../json-reader.js';
import { WorkflowStep as Form } from '../schemas/workflow.js';
import { TimeSlice } from '../time-slice.js';
import { MOST_STEPS, type WorkflowStep } from '../workflow.js';
import { type GraphForm, policiesOf } from './parse-workflow.js';

/** The steps of a definition as text, with payloads to the letter, and back. */

const FIELDS = Object.keys(Form.properties) as (keyof WorkflowStep)[];
/** The deepest nesting that any setting allows. */
const DEEPEST = 1_000;

/** The steps as JSON; their fields are in one order, so that texts can be compared. */
export async function writeSteps(jobs: Readonly<Record<string, unknown>>): Promise<string> {
  const slice = new TimeSlice();
  const parts: string[] = [];
  for (const [name, step] of Object.entries(jobs)) {
    if (slice.isOver) await slice.next();
    parts.push(`${JSON.stringify(name)}:${writeStep(step as WorkflowStep)}`);
  }
  return `{${parts.join(',')}}`;
}

function writeStep(step: WorkflowStep): string {
  const fields = FIELDS.flatMap((name) => {
    const value: unknown = step[name];
    if (value === undefined) return [];
    return [`${JSON.stringify(name)}:${value instanceof JsonText ? value.text : JSON.stringify(value)}`];
  });
  return `{${fields.join(',')}}`;
}

/** Steps that were written, in the form in which requests are read. */
export async function readSteps(text: string): Promise<Readonly<Record<string, unknown>>> {
  const read = await readLargeJsonText(Buffer.from(`{"jobs":${text}}`), {
    ...{ maxDepth: DEEPEST, text: 'payload', orText: 'workflow', maps: ['jobs'], mostItems: MOST_STEPS },
    ...{ allowProto: true, anySize: true },
  });
  return (read as { jobs: Readonly<Record<string, unknown>> }).jobs;
}

/** Tells apart what differs in anything. */
export function digestOf(steps: string, form: Pick<GraphForm, 'onFailure' | 'running'>): Buffer {
  const { onFailure, running } = policiesOf(form);
  return createHash('sha256').update(`${onFailure} ${running} ${steps}`).digest();
}
