import { useEffect } from 'preact/hooks';
import type { ListedSchedule } from '../../../../src/core/wire.js';
import { usePageList } from '../../api/page-list.js';
import { may } from '../../api/session.js';
import { onEvents } from '../../live/live.js';
import { CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { addressOf } from '../../routing/root.js';
import { SchedulePause } from './schedule-actions.js';
import { runsText, timesText } from './schedule-text.js';

/** Firing changes the list less than once in this time for whoever looks at it. */
const LEAST_BETWEEN_MS = 2_000;

/** Schedules with their next occurrences. */
export default function SchedulesScreen() {
  const list = usePageList<ListedSchedule>('/v1/schedules', 100);
  const refresh = () => void list.restart();
  useEffect(() => {
    let timer: number | undefined;
    const stop = onEvents(['schedule.*'], () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        refresh();
      }, LEAST_BETWEEN_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [list]);
  return (
    <>
      <ScreenTop title="Schedules">
        {may('admin') && (
          <a class="button button-main" href={addressOf('/schedules/new')}>
            New schedule
          </a>
        )}
        <CopyAs method="GET" path="/v1/schedules" cli="punctual schedule list" />
      </ScreenTop>
      <Table
        label="Schedules"
        columns={columnsOf(refresh)}
        rows={list.rows.value}
        keyOf={({ name }) => name}
        pathOf={({ name }) => `/schedules/${encodeURIComponent(name)}`}
        list={list}
        hasKeys
        empty={
          <EmptyState
            title="No schedules"
            command="punctual schedule create nightly --cron '0 3 * * *' --task report"
          >
            <p>A schedule runs a task, a workflow or a batch by the calendar, and keeps a ledger of it.</p>
          </EmptyState>
        }
      />
    </>
  );
}

function columnsOf(refresh: () => void): readonly Column<ListedSchedule>[] {
  return [
    { title: 'Schedule', render: ({ name }) => <span class="mono">{name}</span> },
    { title: 'When', render: (schedule) => <span class="mono">{timesText(schedule)}</span> },
    { title: 'Runs', hiddenBelow: 'medium', render: runsText },
    {
      ...{ title: 'Next', width: '110px' },
      render: ({ nextAt, paused }) =>
        paused ? <StateBadge state="paused" /> : nextAt === null ? 'over' : <Moment at={nextAt} />,
    },
    {
      ...{ title: 'Last', width: '110px', hiddenBelow: 'narrow' },
      render: ({ lastAt }) => (lastAt === null ? '–' : <Moment at={lastAt} />),
    },
    {
      ...{ title: 'Steer', width: '130px', hiddenBelow: 'narrow' },
      render: (schedule) => <SchedulePause schedule={schedule} isSmall onDone={refresh} />,
    },
  ];
}
