import type { ListedSchedule } from '../../../../src/core/wire.js';
import { useListNews } from '../../api/fresh-list.js';
import { usePageList } from '../../api/page-list.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { EmptyState } from '../../parts/empty-state.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { addressOf } from '../../routing/root.js';
import { SchedulePause } from './schedule-actions.js';
import { runsText, timesText } from './schedule-text.js';

/** Schedules with their next occurrences. */
export default function SchedulesScreen() {
  const list = usePageList<ListedSchedule>('/v1/schedules', 100);
  const refresh = () => void list.restart();
  useListNews(list, { keyOf: nameOf, events: ['schedule.*'] });
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
        keyOf={nameOf}
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

const nameOf = ({ name }: ListedSchedule) => name;

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
