import { createHash } from 'node:crypto';
import type { Needs } from '../core/submission.js';
import { TimeSlice } from '../core/time-slice.js';

/** What names a job uses; asked for in bulk. */
export interface Named {
  readonly tenant: string;
  readonly queue: string;
  readonly needs: Needs;
}

/** Labels in one canonical text, so that the order in which a user wrote them makes no difference. */
function labelsText(labels: Readonly<Record<string, string>>): string {
  const names = Object.keys(labels);
  if (names.length === 0) return '';
  return JSON.stringify(names.sort().map((name) => [name, labels[name]]));
}

/** The labels that `labelsText` wrote. */
export function textLabels(text: string): Readonly<Record<string, string>> {
  return text === '' ? {} : Object.fromEntries(JSON.parse(text) as [string, string][]);
}

/** Needs in the forms in which they are looked up and stored. */
interface Digest {
  readonly tenant: string;
  /** Labels may be longer than an index can hold. */
  readonly signature: Buffer;
  /** The same as text, to be remembered by. */
  readonly key: string;
  readonly labels: string;
}

/** Digests that are made between two looks at the clock. */
const LOOK_EVERY = 50;
/** A digest takes some ten microseconds and is asked for several times, so each is kept for as long as its needs are. */
const DIGESTS = new WeakMap<Needs, Digest>();

/** The digest of the needs of a job. */
export function digestOf({ tenant, needs }: Named): Digest {
  const known = DIGESTS.get(needs);
  if (known?.tenant === tenant) return known;
  const labels = labelsText(needs.labels);
  const whole = JSON.stringify([tenant, needs.target, needs.handler, labels]);
  const signature = createHash('sha256').update(whole).digest();
  const digest = { tenant, signature, key: signature.toString('base64'), labels };
  DIGESTS.set(needs, digest);
  return digest;
}

/** Makes the digests of many in slices: a bulk may have thousands of large label sets. */
export async function digestAll(named: readonly Named[]): Promise<Digest[]> {
  const digests: Digest[] = [];
  const slice = new TimeSlice();
  for (const each of named) {
    digests.push(digestOf(each));
    if (digests.length % LOOK_EVERY === 0 && slice.isOver) await slice.next();
  }
  return digests;
}

/** Whether a job requires labels. */
export function hasLabels({ needs }: Named): boolean {
  for (const _ in needs.labels) return true;
  return false;
}

/** The needs as a key of a map: short however long the labels are; no tenant, target or handler holds the separator. */
export function needsKey(named: Named): string {
  const { tenant, needs } = named;
  return hasLabels(named) ? digestOf(named).key : `${tenant}\n${needs.target}\n${needs.handler}`;
}
