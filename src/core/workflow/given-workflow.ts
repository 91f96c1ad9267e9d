import { type FieldError, invalid, MOST_ERRORS, PunctualError, pointerStep } from '../errors.js';
import { JsonText } from '../json-reader.js';
import { isPlainObject } from '../schemas/explain.js';
import { readJson, type SubmissionContext } from '../submission.js';
import { TimeSlice } from '../time-slice.js';

/** Steps that are looked at before the time slice is checked again. */
const LOOK_EVERY = 100;

/**
 * A workflow that a program in the process of its node gives as values, in the form in which one comes over HTTP: with its
 * payloads as texts. Null if it must take that way, because it has an input or workflows inside it, which are read from texts.
 */
export async function readGivenWorkflow(
  given: unknown,
  limits: Pick<SubmissionContext, 'maxPayload' | 'maxDepth'>,
): Promise<unknown> {
  if (!isPlainObject(given) || given.input !== undefined || !isPlainObject(given.jobs)) return null;
  const jobs: Record<string, unknown> = {};
  const errors: FieldError[] = [];
  const slice = new TimeSlice();
  let looked = 0;
  for (const [name, step] of Object.entries(given.jobs)) {
    looked += 1;
    if (looked % LOOK_EVERY === 0 && slice.isOver) await slice.next();
    // What HTTP would refuse is left to it, too.
    if (!isPlainObject(step) || step.workflow !== undefined || name === '__proto__') return null;
    if (step.payload === undefined) {
      jobs[name] = step;
      continue;
    }
    const text = readJson(step.payload, limits, (detail, code) => {
      const error = { pointer: `/jobs${pointerStep(name)}/payload`, detail };
      if (code !== 'INVALID_REQUEST')
        throw new PunctualError(code, `${error.pointer}: ${detail}`, { errors: [error] });
      errors.push(error);
    });
    if (text !== null) jobs[name] = { ...step, payload: new JsonText(text, Buffer.byteLength(text)) };
    if (errors.length > MOST_ERRORS) break;
  }
  if (errors.length > 0) throw invalid(errors);
  return { ...given, jobs };
}
