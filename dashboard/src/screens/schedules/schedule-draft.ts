import type { ScheduleDefinition } from '../../../../src/core/schedule.js';
import type { ScheduleView } from '../../../../src/core/wire.js';
import { quoted } from '../../parts/quoted.js';
import { jsonMistake, jsonText } from '../jobs/json-text.js';
import { localText, momentOfLocal } from '../jobs/local-time.js';
import { NO_PROGRAM, type ProgramDraft, programDraftOf, programOf } from '../submit/program-draft.js';

/** A schedule that somebody writes or changes: what stands in the form, as text, and what is sent of it. */

/** Every field of the form. What is empty is left out, and takes its default. */
export interface Draft extends ProgramDraft {
  readonly runs: 'task' | 'target' | 'program' | 'workflow' | 'batch';
  readonly task: string;
  readonly method: string;
  readonly url: string;
  readonly workflow: string;
  /** JSON. */
  readonly batch: string;
  /** JSON: the payload of a job, or the input of a workflow. */
  readonly payload: string;
  readonly due: 'cron' | 'every' | 'at';
  readonly cron: string;
  readonly every: string;
  /** In the zone of the viewer. */
  readonly at: string;
  readonly timezone: string;
  readonly overlap: string;
  readonly catchUp: string;
  readonly jitter: string;
  readonly startAt: string;
  readonly endAt: string;
  readonly queue: string;
  readonly priority: string;
}

/** An empty form. */
export const EMPTY: Draft = {
  ...NO_PROGRAM,
  ...{ runs: 'task', task: '', method: 'POST', url: '', workflow: '', payload: '' },
  ...{ batch: '{\n  "jobs": [\n    { "task": "one" },\n    { "task": "two" }\n  ]\n}' },
  ...{ due: 'cron', cron: '0 3 * * *', every: '15m', at: '' },
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  ...{ overlap: '', catchUp: '', jitter: '', startAt: '', endAt: '', queue: '', priority: '' },
};

/** A field of the API, as JSON so that the numbers of payloads keep their digits, and as an option of the command line. */
interface Part {
  readonly json: string;
  /** Null where the command line has none. */
  readonly option: string | null;
}

type Parts = ReadonlyMap<string, Part>;

const plain = (option: string, value: string): Part => ({
  json: JSON.stringify(value),
  option: `--${option} ${quoted(value)}`,
});

function partsOf(draft: Draft): Parts {
  const parts = new Map<string, Part>();
  const text = (name: string, option: string, value: string | null) => {
    if (value !== null && value.trim() !== '') parts.set(name, plain(option, value.trim()));
  };
  const { runs, due } = draft;
  if (runs === 'task') text('task', 'task', draft.task);
  if (runs === 'workflow') text('workflow', 'workflow', draft.workflow);
  if (runs === 'target') {
    const url = draft.url.trim();
    const target = { type: 'http', method: draft.method, url };
    parts.set('target', { json: JSON.stringify(target), option: `--http ${draft.method} ${quoted(url)}` });
  }
  if (runs === 'program') parts.set('target', { json: programOf(draft), option: null });
  // Its commands read it from their input.
  if (runs === 'batch') parts.set('batch', { json: draft.batch.trim(), option: '--batch -' });
  const payload = draft.payload.trim().replace(/\s*\n\s*/g, ' ');
  if (runs !== 'batch' && payload !== '')
    parts.set('payload', { json: payload, option: `--payload ${quoted(payload)}` });
  if (due === 'cron') text('cron', 'cron', draft.cron);
  if (due === 'every') text('every', 'every', draft.every);
  if (due === 'at') text('at', 'at', momentOfLocal(draft.at));
  if (due === 'cron') text('timezone', 'timezone', draft.timezone);
  text('overlap', 'overlap', draft.overlap);
  catchUpPart(parts, draft.catchUp.trim());
  text('jitter', 'jitter', draft.jitter);
  text('startAt', 'start-at', momentOfLocal(draft.startAt));
  text('endAt', 'end-at', momentOfLocal(draft.endAt));
  // The members of a batch say such things themselves.
  if (runs !== 'workflow' && runs !== 'batch') {
    text('queue', 'queue', draft.queue);
    const priority = draft.priority.trim();
    if (priority !== '') parts.set('priority', { json: priority, option: `--priority ${priority}` });
  }
  return parts;
}

function catchUpPart(parts: Map<string, Part>, typed: string): void {
  if (typed === '') return;
  const isWord = ['none', 'latest', 'all'].includes(typed);
  parts.set('catchUp', {
    json: JSON.stringify(isWord ? typed : { within: typed }),
    option: `--catch-up ${quoted(typed)}`,
  });
}

/** What is sent, and the same as a command; null where no command says it. */
export interface Sent {
  readonly body: string;
  readonly cli: string | null;
}

/** What makes the schedule. */
export function creationOf(name: string, draft: Draft): Sent {
  const parts = partsOf(draft);
  const fields = [...parts].map(([field, { json }]) => `${JSON.stringify(field)}:${json}`);
  return {
    body: `{${[`"name":${JSON.stringify(name)}`, ...fields].join(',')}}`,
    cli: commandOf(`schedule create ${quoted(name || 'NAME')}`, draft, [...parts.values()]),
  };
}

/** What makes a schedule that stood in the form as `before` what it is now; null if nothing has changed. */
export function changeOf(name: string, before: Draft, draft: Draft): Sent | null {
  const [old, parts] = [partsOf(before), partsOf(draft)];
  const given = [...parts].filter(([field, { json }]) => old.get(field)?.json !== json);
  // What takes its place says so already.
  const replaced = new Set(['cron', 'every', 'at', 'task', 'target', 'workflow', 'batch']);
  const unset = [...old.keys()].filter((field) => !parts.has(field) && !replaced.has(field));
  if (given.length + unset.length === 0) return null;
  const fields = [
    ...given.map(([field, { json }]) => `${JSON.stringify(field)}:${json}`),
    ...unset.map((field) => `${JSON.stringify(field)}:null`),
  ];
  const options = [
    ...given.map(([, part]) => part),
    ...unset.map((field) => ({ json: '', option: `--unset ${field}` })),
  ];
  return {
    body: `{${fields.join(',')}}`,
    cli: commandOf(`schedule change ${quoted(name)}`, draft, options),
  };
}

function commandOf(verb: string, { batch }: Draft, parts: readonly Part[]): string | null {
  const options = parts.map(({ option }) => option);
  if (options.includes(null)) return null;
  const command = ['punctual', verb, ...options].join(' ');
  return options.includes('--batch -')
    ? `echo ${quoted(batch.trim().replace(/\s*\n\s*/g, ' '))} | ${command}`
    : command;
}

/** What is no JSON and cannot be sent, by the pointer of its field. */
export function mistakesOf({ runs, payload, batch }: Draft): Readonly<Record<string, string>> {
  const wrongPayload = runs === 'batch' || payload.trim() === '' ? null : jsonMistake(payload);
  const wrongBatch = runs === 'batch' ? jsonMistake(batch) : null;
  return {
    ...(wrongPayload !== null && { '/payload': wrongPayload }),
    ...(wrongBatch !== null && { '/batch': wrongBatch }),
  };
}

/** A schedule as the form shows it. */
export function draftOf(schedule: ScheduleView): Draft {
  const { task, target, workflow, batch, payload, cron, every, at, catchUp } = schedule;
  const call = target?.type === 'http' ? target : null;
  const isProgram = target?.type === 'exec';
  return {
    ...EMPTY,
    runs: workflow ? 'workflow' : batch ? 'batch' : call ? 'target' : isProgram ? 'program' : 'task',
    task: task ?? '',
    ...(target && programDraftOf(target)),
    ...(call && { method: call.method ?? 'POST', url: call.url }),
    workflow: workflow ?? '',
    ...(batch && { batch: jsonText(batch) }),
    payload: payload === undefined || payload === null ? '' : jsonText(payload),
    due: cron ? 'cron' : every ? 'every' : 'at',
    cron: cron ?? EMPTY.cron,
    every: every ?? EMPTY.every,
    at: at ? localText(at) : '',
    timezone: schedule.timezone ?? 'UTC',
    overlap: schedule.overlap ?? '',
    catchUp: catchUpText(catchUp),
    jitter: schedule.jitter ?? '',
    startAt: schedule.startAt ? localText(schedule.startAt) : '',
    endAt: schedule.endAt ? localText(schedule.endAt) : '',
    queue: schedule.queue ?? '',
    priority: schedule.priority === undefined ? '' : String(schedule.priority),
  };
}

function catchUpText(catchUp: ScheduleDefinition['catchUp']): string {
  if (catchUp === undefined || catchUp === null) return '';
  return typeof catchUp === 'object' ? catchUp.within : catchUp;
}

/** Whether a call or a program says more than the form can show, so that changing it would lose the rest. */
export function hasMoreThanForm({ target }: ScheduleView): boolean {
  if (!target) return false;
  if (target.type === 'exec') return programDraftOf(target) === null;
  if (target.type !== 'http') return true;
  return Object.keys(target).some((name) => !['type', 'method', 'url'].includes(name));
}
