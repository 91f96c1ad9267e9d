import type { Job, ListedJob, Target } from '../../../../src/core/job.js';
import type { Tone } from '../../parts/state-badge.js';

/** Jobs in words. */

/** What a job does, in a few words: its task, or what its target calls or starts. */
export function workText({ task, target }: Pick<Job, 'task' | 'target'>): string {
  return task ?? targetText(target);
}

/** What a target does. */
export function targetText(target: Target): string {
  switch (target.type) {
    case 'handler':
      return target.name === '' ? 'waits' : target.name;
    case 'http':
      return `${target.method ?? 'POST'} ${target.url}`;
    default:
      return target.artifact ?? target.command ?? target.type;
  }
}

/** The artifact that a job runs; null if it runs none. */
export function artifactOf({ target }: Pick<Job, 'target'>): string | null {
  return target.type === 'exec' ? (target.artifact ?? null) : null;
}

/** How a job stands, with what its state alone does not say. */
export function standing(job: Pick<ListedJob, 'state' | 'hold' | 'cancelRequestedAt' | 'failures'>): {
  readonly text: string;
  readonly tone?: Tone;
} {
  if (job.hold && (job.state === 'pending' || job.state === 'blocked'))
    return { text: 'on hold', tone: 'held' };
  if (job.state === 'running' && job.cancelRequestedAt !== null) return { text: 'stopping', tone: 'warn' };
  if (job.state === 'pending' && job.failures > 0) return { text: 'retrying', tone: 'warn' };
  return { text: job.state };
}

/** The first characters of an id: as many as tell jobs apart that were made within a minute. */
export function shortId(id: string): string {
  return id.slice(0, 13);
}

/** How long the last attempt of a job ran; null while it has not ended. */
export function lastedMs({
  startedAt,
  finishedAt,
}: Pick<ListedJob, 'startedAt' | 'finishedAt'>): number | null {
  return startedAt === null || finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
}
