import type { ComponentChildren } from 'preact';
import type { Batch } from '../../../../src/core/batch.js';
import type { Job } from '../../../../src/core/job.js';
import type { ScheduleView } from '../../../../src/core/wire.js';
import type { Workflow } from '../../../../src/core/workflow.js';
import { type Action, ActionButton } from '../../parts/action.js';
import { goTo } from '../../routing/location.js';

interface SchedulePauseProps {
  readonly schedule: Pick<ScheduleView, 'name' | 'paused'>;
  readonly isSmall?: boolean;
  readonly onDone: () => void;
}

const pathOf = (name: string) => `/v1/schedules/${encodeURIComponent(name)}`;

/** Has a schedule skip its occurrences, or go on; the one takes the other back. */
export function SchedulePause({ schedule: { name, paused }, isSmall = false, onDone }: SchedulePauseProps) {
  const change = (verb: 'pause' | 'resume'): Action => ({
    label: verb === 'pause' ? 'Pause' : 'Resume',
    method: 'POST',
    path: `${pathOf(name)}/${verb}`,
    cli: `punctual schedule ${verb} ${name}`,
    scope: 'admin',
    done: verb === 'pause' ? `${name} is paused: its occurrences are skipped.` : `${name} goes on.`,
    onDone,
  });
  const action = { ...change(paused ? 'resume' : 'pause'), undo: change(paused ? 'pause' : 'resume') };
  return <ActionButton action={action} isSmall={isSmall} />;
}

interface ScheduleActionsProps {
  readonly schedule: ScheduleView;
  readonly onDone: () => void;
  /** More of them, which stand before the one that cannot be taken back. */
  readonly children: ComponentChildren;
}

/** What can be done to a schedule. */
export function ScheduleActions({ schedule, onDone, children }: ScheduleActionsProps) {
  const { name } = schedule;
  return (
    <>
      <SchedulePause schedule={schedule} onDone={onDone} />
      <ActionButton
        action={{
          label: 'Run now',
          method: 'POST',
          path: `${pathOf(name)}/run`,
          cli: `punctual schedule run ${name}`,
          scope: 'submit',
          done: `${name} runs now, beside its times.`,
          onDone: (answer) => goTo(pathOfRun(schedule, answer as Job | Workflow | Batch)),
        }}
      />
      {children}
      <ActionButton
        action={{
          label: 'Delete',
          method: 'DELETE',
          path: pathOf(name),
          cli: `punctual schedule delete ${name}`,
          scope: 'admin',
          isDangerous: true,
          done: `${name} is deleted.`,
          question: {
            title: `Delete ${name}?`,
            text: 'It is due no more. Jobs that are due or have started go on, and its ledger is kept.',
            verb: 'Delete',
            isDangerous: true,
          },
          onDone: () => goTo('/schedules'),
        }}
      />
    </>
  );
}

function pathOfRun({ workflow, batch }: ScheduleView, { id }: { readonly id: string }): string {
  if (workflow !== undefined) return `/workflows/${id}`;
  return batch === undefined ? `/jobs/${id}` : `/batches/${id}`;
}
