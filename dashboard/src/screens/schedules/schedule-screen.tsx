import { useState } from 'preact/hooks';
import type { ScheduleView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { Facts } from '../../parts/facts.js';
import { JsonView } from '../../parts/json-view.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { Backfill } from './backfill.js';
import { useExpressionWords } from './expression-words.js';
import { Ledger } from './ledger.js';
import { OccurrenceList } from './occurrence-list.js';
import { ScheduleActions } from './schedule-actions.js';
import { runsText, timesText } from './schedule-text.js';
import { type TypedTimes, usePreview } from './use-preview.js';

/** One schedule: when it is due next, and what became of what was due. */
export default function ScheduleScreen({ params: { name = '' } }: ScreenProps) {
  const path = `/v1/schedules/${encodeURIComponent(name)}`;
  const schedule = useResource<ScheduleView>(path, { events: ['schedule.*'], isExact: true });
  const [isFilling, setFilling] = useState(false);
  const view = schedule.data.value;
  return (
    <>
      <ScreenTop title={<span class="mono">{name}</span>}>
        {view && (
          <ScheduleActions schedule={view} onDone={() => void schedule.refresh()}>
            {view && may('admin') && (
              <a class="button" href={addressOf(`/schedules/${encodeURIComponent(name)}/edit`)}>
                Edit
              </a>
            )}
            {view && may('submit') && (
              <button type="button" class="button" onClick={() => setFilling(true)}>
                Backfill
              </button>
            )}
          </ScheduleActions>
        )}
        <CopyAs method="GET" path={path} cli={`punctual schedule get ${quoted(name)}`} />
      </ScreenTop>
      <div class="stack">
        <div class="grid">
          <Panel title="Schedule" resource={schedule}>
            {(now) => <About schedule={now} />}
          </Panel>
          <Panel title="Next ten" resource={schedule}>
            {(now) => <Next schedule={now} />}
          </Panel>
        </div>
        <Panel title="Ledger" resource={schedule}>
          {() => <Ledger name={name} />}
        </Panel>
      </div>
      {isFilling && <Backfill name={name} onClose={() => setFilling(false)} />}
    </>
  );
}

function About({ schedule }: { readonly schedule: ScheduleView }) {
  const words = useExpressionWords(schedule.cron);
  const { paused, nextAt, lastJob, overlap, catchUp, payload, changedAt, changedBy, managedBy } = schedule;
  return (
    <div class="stack">
      <Facts
        facts={[
          [
            'When',
            <span key="when" class="mono">
              {timesText(schedule)}
            </span>,
          ],
          ['In words', words],
          ['Runs', runsText(schedule)],
          [
            'State',
            paused ? <StateBadge key="state" state="paused" /> : nextAt === null ? 'over' : 'goes on',
          ],
          [
            'Newest job',
            lastJob && (
              <a key="job" href={addressOf(`/jobs/${lastJob.id}`)}>
                <StateBadge state={lastJob.state} />
              </a>
            ),
          ],
          ['If the one before still runs', overlap],
          ['After downtime', typeof catchUp === 'object' ? `all within ${catchUp.within}` : catchUp],
          ['Kept by the program', managedBy],
          [
            'Changed',
            <span key="changed">
              <Moment at={changedAt} /> by {changedBy}
            </span>,
          ],
        ]}
      />
      {payload !== undefined && payload !== null && <JsonView value={payload} label="Payload" />}
    </div>
  );
}

function Next({ schedule }: { readonly schedule: ScheduleView }) {
  const { cron, timezone, paused } = schedule;
  const { occurrences, problem } = usePreview(paused ? null : timesOf(schedule));
  if (paused) return <p class="soft">None while it is paused.</p>;
  if (problem) return <p class="notice notice-bad">{problem.message}</p>;
  if (occurrences.length === 0) return <p class="soft">None.</p>;
  return (
    <OccurrenceList occurrences={occurrences} {...(cron !== undefined && { timezone: timezone ?? 'UTC' })} />
  );
}

/** Null if nothing is due any more. */
function timesOf({
  cron,
  every,
  at,
  timezone,
  dst,
  startAt,
  endAt,
  nextAt,
}: ScheduleView): TypedTimes | null {
  if (nextAt === null) return null;
  const end = endAt && { endAt };
  // An interval counts from a moment of its own, of which its next occurrence is a later one.
  if (every !== undefined) return { every, startAt: nextAt, from: justBefore(nextAt), ...end };
  if (cron === undefined) return { at: at ?? nextAt };
  return { cron, timezone: timezone ?? 'UTC', ...(dst && { dst }), ...(startAt && { startAt }), ...end };
}

function justBefore(moment: string): string {
  return new Date(Date.parse(moment) - 1).toISOString();
}
