import type { FaultRecord, History, Restored, Settings, Span, Submission } from './history.js';

/** What explains that something was late, was tried again, or is gone. */

/** How long the scheduler may take to be as before: a takeover, a full worker timeout for sessions that may come back, and room for a machine that is busy. */
export function graceMs({ leaseTtlMs, workerTimeoutMs }: Settings): number {
  return leaseTtlMs * 2 + workerTimeoutMs * 2 + 5_000;
}

/** The time in which a fault had something broken; null if it was nothing but load. */
export function brokenBy({ from, to, broken }: FaultRecord): Span | null {
  return broken === undefined ? { from, to } : broken;
}

/** Whether a fault hit more than workers, what they send and whom they call. */
export function hitsScheduler({ targets }: FaultRecord): boolean {
  return targets.some((target) => !/^(w\d|sink)/.test(target));
}

/** Whether something that the scheduler stands on was broken in a time, or so shortly before it that it still mattered. */
export function wasDisturbed(
  { faults }: Pick<History, 'faults'>,
  time: Span,
  mattersForMs: number,
  except?: FaultRecord,
): boolean {
  return faults.some((fault) => {
    const broken = fault !== except && hitsScheduler(fault) ? brokenBy(fault) : null;
    return broken !== null && broken.from <= time.to && broken.to + mattersForMs >= time.from;
  });
}

/** Whether, but for the given fault, nothing that the scheduler stands on was broken in or shortly before a time. */
export function isUndisturbed(
  history: Pick<History, 'faults' | 'settings'>,
  time: Span,
  except: FaultRecord,
): boolean {
  return !wasDisturbed(history, time, history.settings.leaseTtlMs * 2, except);
}

/** The older copies that the run went back to. */
export function restoresOf({ faults }: Pick<History, 'faults'>): Restored[] {
  return faults.flatMap(({ restored }) => (restored ? [restored] : []));
}

/** Whether a submission was under way in a time that a restored copy knows nothing of. */
export function mayBeLost(restores: readonly Restored[], { sentAt, answeredAt }: Submission): boolean {
  return restores.some(({ copiedAt, downAt }) => sentAt <= downAt && answeredAt >= copiedAt);
}

/** Whether something may have been reckoned by a clock that was set back, and so looks minutes older than it is. */
export function wasClockBack(
  { faults, settings }: Pick<History, 'faults' | 'settings'>,
  time: Span,
): boolean {
  return faults.some(
    ({ clockBack }) =>
      clockBack && clockBack.from <= time.to && time.from <= clockBack.to + settings.leaseTtlMs,
  );
}
