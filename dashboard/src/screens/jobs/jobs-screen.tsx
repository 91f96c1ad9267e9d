import './jobs.css';
import { useMemo, useState } from 'preact/hooks';
import type { ListedJob } from '../../../../src/core/job.js';
import { type PageList, usePageList } from '../../api/page-list.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { countText, plural } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { ScreenTop } from '../../parts/panel.js';
import { type Selection, Table } from '../../parts/table.js';
import { goTo, query } from '../../routing/location.js';
import { addressOf } from '../../routing/root.js';
import { ChangeMany, mayChoose } from './change-many.js';
import { JOB_COLUMNS } from './job-columns.js';
import {
  addressWith,
  filterOfQuery,
  filterOptions,
  type JobFilter,
  listPath,
  textOfFilter,
} from './job-filter.js';
import { QueryBar } from './query-bar.js';
import { type News, useRowNews } from './row-news.js';
import { StateChoice } from './state-choice.js';
import { Views } from './views.js';

/** The most jobs that a change of chosen ones may name. */
const MOST_CHOSEN = 1_000;

/** Jobs, filtered, followed and changed together. */
export default function JobsScreen() {
  const filter = filterOfQuery(query.value);
  const path = listPath(filter);
  const list = usePageList<ListedJob>(path);
  const news = useRowNews(list, filter);
  const [selection, setSelection] = useChosen(path);
  const show = (next: JobFilter) => goTo(addressWith('/jobs', next));
  const refresh = () => {
    setSelection(new Set());
    void news.show();
  };
  const rows = list.rows.value;
  return (
    <>
      <ScreenTop title="Jobs">
        <Views filter={filter} />
        {may('submit') && (
          <a class="button button-main" href={addressOf('/submit')}>
            Submit a job
          </a>
        )}
      </ScreenTop>
      <QueryBar filter={filter} rows={rows} onChange={show} />
      <div class="jobs-bar">
        <StateChoice filter={filter} onChange={show} />
        <span class="jobs-bar-end">
          <NewsButton news={news.news.value} onShow={refresh} />
          <ChangeMany
            filter={filter}
            chosen={selection}
            onForget={() => setSelection(new Set())}
            onChanged={refresh}
          />
          <CopyAs method="GET" path={path} cli={`punctual job list ${filterOptions(filter)}`.trim()} />
        </span>
      </div>
      <Table
        label="Jobs"
        hasKeys
        columns={JOB_COLUMNS}
        rows={rows}
        list={list}
        keyOf={idOf}
        pathOf={pathOf}
        onSeen={news.see}
        {...(mayChoose() && { selection: selectionOf(selection, setSelection) })}
        empty={<NoJobs filter={filter} />}
      />
      <SearchNote list={list} />
    </>
  );
}

const idOf = ({ id }: ListedJob) => id;
const pathOf = ({ id }: ListedJob) => `/jobs/${id}`;

/** The jobs that somebody has chosen; another list begins with none. */
function useChosen(path: string): [ReadonlySet<string>, (ids: ReadonlySet<string>) => void] {
  const [chosen, setChosen] = useState<{ readonly path: string; readonly ids: ReadonlySet<string> }>({
    path,
    ids: new Set(),
  });
  const none = useMemo(() => new Set<string>(), []);
  return [chosen.path === path ? chosen.ids : none, (ids) => setChosen({ path, ids })];
}

function selectionOf(ids: ReadonlySet<string>, set: (ids: ReadonlySet<string>) => void): Selection {
  return {
    has: (id) => ids.has(id),
    toggle: (id) => {
      const next = new Set(ids);
      if (!next.delete(id) && next.size < MOST_CHOSEN) next.add(id);
      set(next);
    },
  };
}

/** How many jobs there are that are not in the list yet. */
function NewsButton({
  news: { count, isVague },
  onShow,
}: {
  readonly news: News;
  readonly onShow: () => void;
}) {
  const words =
    count === 0 ? 'There may be new jobs' : `${isVague ? 'At least ' : ''}${plural(count, 'new job')}`;
  return (
    <span role="status">
      {(count > 0 || isVague) && (
        <button type="button" class="button button-small jobs-news" onClick={onShow}>
          {words} · show
        </button>
      )}
    </span>
  );
}

/** How far a search for what is rare has come, and the way on. */
function SearchNote({ list }: { readonly list: PageList<ListedJob> }) {
  const [found, looked] = [list.rows.value.length + list.before.value, list.scanned.value];
  if (!list.isPaused.value) return null;
  return (
    <p class="notice jobs-search" role="status">
      Looked at {plural(looked, 'job')} and found {countText(found)}.{' '}
      <button type="button" class="link" onClick={() => void list.goOn()}>
        Look further
      </button>
    </p>
  );
}

function NoJobs({ filter }: { readonly filter: JobFilter }) {
  if (Object.keys(filter).length === 0)
    return (
      <EmptyState
        title="There are no jobs yet"
        command={`punctual job submit --task hello --payload '{"name":"you"}'`}
      >
        <p>Submit one here, from a program, or with:</p>
      </EmptyState>
    );
  return (
    <EmptyState title="No job fits" command={`punctual job list ${filterOptions(filter)}`}>
      <p>
        Nothing fits <span class="mono">{textOfFilter(filter)}</span>.{' '}
        <a href={addressOf('/jobs')}>Show all jobs</a>
      </p>
    </EmptyState>
  );
}
