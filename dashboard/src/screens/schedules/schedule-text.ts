import type { ListedSchedule } from '../../../../src/core/wire.js';

/** When a schedule is due, as it was written. */
export function timesText({ cron, every, at, timezone }: ListedSchedule): string {
  if (cron !== undefined) return timezone && timezone !== 'UTC' ? `${cron} (${timezone})` : cron;
  return every !== undefined ? `every ${every}` : `once, at ${at}`;
}

/** What a schedule runs. */
export function runsText({ task, target, workflow, batch }: ListedSchedule): string {
  if (workflow !== undefined) return `workflow ${workflow}`;
  if (batch !== undefined) return 'a batch';
  if (task !== undefined && task !== null) return task;
  return target?.type === 'http' ? `${target.method ?? 'POST'} ${target.url}` : (target?.type ?? '');
}
