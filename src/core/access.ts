import type { Duration } from './duration.js';
import { invalid } from './errors.js';
import type { Target } from './job.js';

/** What a key may do. */
export const KEY_SCOPES = ['read', 'submit', 'work', 'admin'] as const;

export type KeyScope = (typeof KEY_SCOPES)[number];

/** The scopes that the key of an operator may have; without any it may do everything. */
export const OPERATOR_SCOPES: readonly KeyScope[] = ['read'];

/** Throws INVALID_REQUEST for scopes that the key of an operator cannot have. */
export function checkOperatorScopes(scopes: readonly KeyScope[]): void {
  if (scopes.every((scope) => OPERATOR_SCOPES.includes(scope))) return;
  const detail = "an operator's key may do everything, or with the scope read alone only read";
  throw invalid([{ pointer: '/scopes', detail }]);
}

/** The queues and tasks that a key is limited to; null is no limit. */
export interface KeyLimits {
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
}

/** A key as the API shows it. */
export interface KeyView {
  readonly id: string;
  readonly name: string;
  /** Whose key it is; null for an operator's. */
  readonly tenant: string | null;
  readonly operator: boolean;
  readonly scopes: readonly KeyScope[];
  /** The queues it may touch; null for all. */
  readonly queues: readonly string[] | null;
  /** The tasks it may touch; null for all. */
  readonly tasks: readonly string[] | null;
  readonly expiresAt: string | null;
  readonly createdAt: string;
  /** The name of the key that made it; null if it was made in the database. */
  readonly createdBy: string | null;
  /** When it was last used, to the hour: the beginning of that hour, which may be before the key was made. */
  readonly lastUsedAt: string | null;
}

/** A key that was just made, with the key itself, which is shown this once. */
export interface NewKeyView extends KeyView {
  readonly key: string;
}

/** What a key is made from. */
export interface KeyInput {
  readonly name: string;
  /** At least one for a tenant's key; for an operator's `read` alone, or none: it may do everything then. */
  readonly scopes?: readonly KeyScope[];
  readonly expiresAt?: string;
  readonly queues?: readonly string[];
  readonly tasks?: readonly string[];
  /** The tenant it is for, if an operator makes it. */
  readonly tenant?: string;
  readonly operator?: boolean;
}

/** How a key is replaced by the next one. */
export interface KeyRotation {
  /** How long the old key is still valid; default 24h. */
  readonly oldExpiresIn?: Duration;
  /** When the next key expires; default when the old one would have. */
  readonly expiresAt?: string;
}

/** Whether limits allow what is in this queue and of this task; a job without a task is outside every list of tasks. */
export function isWithin(
  { queues, tasks }: KeyLimits,
  { queue, task }: { readonly queue: string; readonly task: string | null },
): boolean {
  return (
    (queues === null || queues.includes(queue)) && (tasks === null || (task !== null && tasks.includes(task)))
  );
}

/**
 * What takes the place of the task where a worker's key is compared with a job: the handler that runs it. Workers are given
 * jobs by their handlers, and what a worker was given it must be able to report.
 */
export function handlerOf({ task, target }: StoredWork): string | null {
  const stored = target === null ? null : (JSON.parse(target) as Target);
  return stored?.type === 'handler' ? stored.name : task;
}

/** What a job runs, as it is stored: its target is JSON text, and null if it is the handler that the task names. */
export interface StoredWork {
  readonly task: string | null;
  readonly target: string | null;
}

/** What both limits allow; null is no limit. Mostly there are none, and nothing is made. */
export function withinBoth(one: KeyLimits | null, other: KeyLimits | null): KeyLimits | null {
  if (one === null || other === null) return one ?? other;
  return { queues: inBoth(one.queues, other.queues), tasks: inBoth(one.tasks, other.tasks) };
}

function inBoth(one: readonly string[] | null, other: readonly string[] | null): readonly string[] | null {
  if (one === null || other === null) return one ?? other;
  return one.filter((name) => other.includes(name));
}

/** Whether everything that the inner limits allow is allowed by the outer ones. */
export function areWithin(inner: KeyLimits, outer: KeyLimits): boolean {
  return isSubset(inner.queues, outer.queues) && isSubset(inner.tasks, outer.tasks);
}

function isSubset(inner: readonly string[] | null, outer: readonly string[] | null): boolean {
  return outer === null || (inner?.every((name) => outer.includes(name)) ?? false);
}
