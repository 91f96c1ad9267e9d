import type { Job, Target } from '../../../../src/core/job.js';
import { parseExactly, writeExactly } from '../../api/exact-json.js';
import { quoted } from '../../parts/quoted.js';
import { jsonMistake, jsonText } from '../jobs/json-text.js';
import { localText, momentOfLocal } from '../jobs/local-time.js';
import { linesOf, nested, objectOf, type Parts, part } from './json-parts.js';
import { NO_PROGRAM, type ProgramDraft, programDraftOf, programOf } from './program-draft.js';

/** A job that somebody is about to submit: what stands in the form, as text, and what is sent of it. */

/** Every field of the form. What is empty is left out, and takes its default. */
export interface Draft extends ProgramDraft {
  readonly kind: 'task' | 'http' | 'program' | 'other';
  readonly task: string;
  readonly method: string;
  readonly url: string;
  /** Lines of `Name: value`. */
  readonly headers: string;
  /** The rest of an http target, or the whole of another one, as JSON. */
  readonly target: string;
  readonly payload: string;
  readonly queue: string;
  readonly priority: string;
  readonly when: 'now' | 'delay' | 'at';
  readonly delay: string;
  readonly at: string;
  readonly key: string;
  readonly keyMode: string;
  readonly keyWindow: string;
  readonly delivery: string;
  readonly maxAttempts: string;
  readonly backoffBase: string;
  readonly backoffFactor: string;
  readonly backoffMax: string;
  readonly lostAttempts: string;
  readonly timeout: string;
  readonly concurrencyKey: string;
  /** Lines of `name=value`. */
  readonly labels: string;
  readonly startBefore: string;
  readonly hold: boolean;
}

export const EMPTY: Draft = {
  ...NO_PROGRAM,
  ...{ kind: 'task', task: '', method: 'POST', url: '', headers: '', target: '', payload: '' },
  ...{ queue: '', priority: '', when: 'now', delay: '', at: '', key: '', keyMode: '', keyWindow: '' },
  ...{ delivery: '', maxAttempts: '', backoffBase: '', backoffFactor: '', backoffMax: '', lostAttempts: '' },
  ...{ timeout: '', concurrencyKey: '', labels: '', startBefore: '', hold: false },
};

const text = JSON.stringify;

/** A number as it was typed; what is none is sent as text, and the API says what is wrong with it. */
function number(name: string, value: string): Parts {
  const typed = value.trim();
  return part(name, typed, /^-?\d+(\.\d+)?$/.test(typed) ? String(Number(typed)) : text(typed));
}

/** The body of the submission. */
export function bodyOf(draft: Draft): string {
  const backoff = [
    ...part('base', draft.backoffBase),
    ...number('factor', draft.backoffFactor),
    ...part('max', draft.backoffMax),
  ];
  const retry = [
    ...number('maxAttempts', draft.maxAttempts),
    ...nested('backoff', backoff),
    ...nested('onWorkerLost', number('maxAttempts', draft.lostAttempts)),
  ];
  return objectOf([
    ...workOf(draft),
    ...part('payload', draft.payload, onOneLine(draft.payload)),
    ...part('queue', draft.queue),
    ...number('priority', draft.priority),
    ...(draft.when === 'delay' ? part('delay', draft.delay) : []),
    ...(draft.when === 'at' ? part('runAt', momentOfLocal(draft.at) ?? '') : []),
    ...part('key', draft.key),
    ...part('keyMode', draft.keyMode),
    ...part('keyWindow', draft.keyWindow),
    ...part('delivery', draft.delivery),
    ...nested('retry', retry),
    ...part('timeout', draft.timeout),
    ...part('concurrencyKey', draft.concurrencyKey),
    ...nested('requires', linesOf(draft.labels, '=')),
    ...part('startBefore', momentOfLocal(draft.startBefore) ?? ''),
    ...(draft.hold ? ([['hold', 'true']] as const) : []),
  ]);
}

/** JSON without its line breaks, which stand between values only. */
function onOneLine(json: string): string {
  return json.trim().replace(/\s*\n\s*/g, ' ');
}

function workOf(draft: Draft): Parts {
  const { kind, task, method, url, headers, target } = draft;
  if (kind === 'task') return part('task', task);
  if (kind === 'program') return [['target', programOf(draft)]];
  if (kind === 'other') return part('target', target, onOneLine(target));
  const more = target.trim() === '' ? [] : Object.entries(parseExactly(target) as object);
  return [
    [
      'target',
      objectOf([
        ['type', text('http')],
        ['method', text(method)],
        ['url', text(url.trim())],
        ...nested('headers', linesOf(headers, ':')),
        ...more.map(([name, value]) => [name, writeExactly(value)!] as const),
      ]),
    ],
  ];
}

/** What cannot be sent because it is no JSON, by the pointer of its field. */
export function mistakesOf({ payload, target, kind }: Draft): Readonly<Record<string, string>> {
  const wrongPayload = payload.trim() === '' ? null : jsonMistake(payload);
  const wrongTarget =
    kind === 'task' || kind === 'program' || target.trim() === '' ? null : objectMistake(target);
  return {
    ...(wrongPayload !== null && { '/payload': wrongPayload }),
    ...(wrongTarget !== null && { '/target': wrongTarget }),
  };
}

function objectMistake(json: string): string | null {
  const mistake = jsonMistake(json);
  if (mistake !== null || json.trim().startsWith('{')) return mistake;
  return 'This is not an object of JSON, such as {"timeout": "10s"}.';
}

/** The same as a command; what has no option goes through a document. */
export function cliOf(draft: Draft): string {
  const { kind, when } = draft;
  const isPlain =
    kind === 'task' &&
    ![draft.backoffBase, draft.backoffFactor, draft.backoffMax, draft.lostAttempts].some(Boolean);
  if (!isPlain) return `echo ${quoted(bodyOf(draft))} | punctual job submit --file -`;
  const option = (name: string, value: string | null) =>
    value === null || value.trim() === '' ? [] : [`--${name} ${quoted(value.trim())}`];
  return [
    'punctual job submit',
    ...option('task', draft.task),
    ...option('payload', onOneLine(draft.payload)),
    ...option('queue', draft.queue),
    ...option('priority', draft.priority),
    ...(when === 'delay' ? option('delay', draft.delay) : []),
    ...(when === 'at' ? option('run-at', momentOfLocal(draft.at)) : []),
    ...option('key', draft.key),
    ...option('key-mode', draft.keyMode),
    ...option('key-window', draft.keyWindow),
    ...option('delivery', draft.delivery),
    ...option('max-attempts', draft.maxAttempts),
    ...option('timeout', draft.timeout),
    ...option('concurrency-key', draft.concurrencyKey),
    ...draft.labels.split('\n').flatMap((line) => option('requires', line)),
    ...option('start-before', momentOfLocal(draft.startBefore)),
    ...(draft.hold ? ['--hold'] : []),
  ].join(' ');
}

/** A job as the form shows it, to be changed and run again; its key and its time were its own. */
export function draftOfJob(job: Job): Draft {
  const { retry, delivery } = job;
  return {
    ...EMPTY,
    ...workOfJob(job),
    payload: job.payload === null ? '' : jsonText(job.payload),
    queue: job.queue,
    priority: String(job.priority),
    delivery,
    ...(delivery === 'at-least-once' && { maxAttempts: String(retry.maxAttempts ?? '') }),
    backoffBase: retry.backoff?.base ?? '',
    backoffFactor: String(retry.backoff?.factor ?? ''),
    backoffMax: retry.backoff?.max ?? '',
    lostAttempts: String(retry.onWorkerLost?.maxAttempts ?? ''),
    timeout: job.timeout,
    concurrencyKey: job.concurrencyKey ?? '',
    labels: Object.entries(job.requires)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
  };
}

function workOfJob({ task, target }: Job): Partial<Draft> {
  if (task !== null) return { kind: 'task', task };
  const program = programDraftOf(target);
  if (program !== null) return { kind: 'program', ...program };
  if (target.type !== 'http') return { kind: 'other', target: jsonText(target) };
  const {
    type: _,
    url,
    method = 'POST',
    headers = {},
    ...rest
  } = target as Extract<Target, { type: 'http' }>;
  return {
    ...{ kind: 'http', url, method },
    headers: Object.entries(headers)
      .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : text(value)}`)
      .join('\n'),
    target: Object.keys(rest).length === 0 ? '' : jsonText(rest),
  };
}

/** The beginning of a form that a link asks for. */
export function draftOfQuery(query: URLSearchParams): Draft {
  const given = (name: string) => query.get(name) ?? '';
  return {
    ...EMPTY,
    task: given('task'),
    queue: given('queue'),
    payload: given('payload'),
    key: given('key'),
  };
}

/** An hour from now, for who chooses a time. */
export function soon(now: number): string {
  return localText(Math.ceil(now / 60_000) * 60_000 + 3_600_000).slice(0, 16);
}
