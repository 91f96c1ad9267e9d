import { humanDuration } from '../core/duration.js';
import type { Output } from './output.js';

/** Why something does not run, as text. */

/** What a node says about it. */
export interface Reason {
  readonly state: string;
  /** What it waits for, in one word. */
  readonly gate: string | null;
  readonly detail: string;
  readonly figures: Readonly<Record<string, number | string | boolean | null>>;
}

/** The reason with its figures. */
export function whyDetails(output: Output, { state, gate, detail, figures }: Reason): string {
  return output.details([
    ['state', state],
    ['gate', gate === null ? null : { text: gate, style: 'yellow' }],
    ['detail', detail],
    ...Object.entries(figures).map(figureLine),
  ]);
}

/** A figure as text; the names of durations end with `Ms`, those of moments with `At`. */
function figureLine([name, value]: [string, unknown]): [string, string | null] {
  if (typeof value !== 'number') return [name, value === null ? null : String(value)];
  if (name.endsWith('Ms')) return [name.slice(0, -2), humanDuration(value)];
  return [name, name.endsWith('At') ? new Date(value).toISOString() : String(value)];
}
