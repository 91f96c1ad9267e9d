import { useState } from 'preact/hooks';
import type { OriginView } from '../../../../src/core/wire.js';
import { useFreshList } from '../../api/fresh-list.js';
import { may } from '../../api/session.js';
import { ActionButton, CopyAs } from '../../parts/action.js';
import { countText, durationText } from '../../parts/duration-text.js';
import { EmptyState } from '../../parts/empty-state.js';
import { noneText, rateText } from '../../parts/limit-text.js';
import { Moment } from '../../parts/moment.js';
import { ScreenTop } from '../../parts/panel.js';
import { StateBadge } from '../../parts/state-badge.js';
import { type Column, Table } from '../../parts/table.js';
import { OriginLimitsDialog } from './origin-limits.js';

const FIGURES_EVERY_MS = 5_000;

/** What http targets call: circuits, pauses and limits. */
export default function OriginsScreen() {
  const list = useFreshList<OriginView>('/v1/origins', {
    keyOf: ({ origin }) => origin,
    events: ['origin.*'],
    everyMs: FIGURES_EVERY_MS,
  });
  const [limited, setLimited] = useState<OriginView | null>(null);
  const refresh = () => void list.restart();
  return (
    <>
      <ScreenTop title="HTTP targets">
        <CopyAs method="GET" path="/v1/origins" cli="punctual origin list" />
      </ScreenTop>
      <Table
        label="Origins"
        columns={columnsOf(refresh, setLimited)}
        rows={list.rows.value}
        keyOf={({ origin }) => origin}
        list={list}
        hasKeys
        empty={
          <EmptyState
            title="No origin was called"
            command="punctual job submit --http POST https://example.com/hook"
          >
            <p>
              An origin is listed once jobs have called it, while it is paused or down, and as long as it has
              limits.
            </p>
          </EmptyState>
        }
      />
      {limited && <OriginLimitsDialog origin={limited} onClose={() => setLimited(null)} onDone={refresh} />}
    </>
  );
}

/** What the states of a circuit mean to somebody who only wants to know whether calls go out. */
const WORDS: Readonly<Record<OriginView['state'], string>> = {
  closed: 'up',
  open: 'down',
  probing: 'being tried',
  paused: 'paused',
};

function columnsOf(refresh: () => void, limit: (origin: OriginView) => void): readonly Column<OriginView>[] {
  return [
    { title: 'Origin', render: ({ origin }) => <span class="mono">{origin}</span> },
    {
      ...{ title: 'State', width: '120px' },
      render: ({ state }) => <StateBadge state={state} text={WORDS[state]} />,
    },
    {
      ...{ title: 'Until', width: '110px', hiddenBelow: 'narrow' },
      render: ({ until }) => (until === null ? '–' : <Moment at={until} />),
    },
    {
      ...{ title: 'Failed in a row', isNumber: true, width: '120px', hiddenBelow: 'medium' },
      render: ({ consecutiveFailures }) => countText(consecutiveFailures),
    },
    { title: 'Calls', isNumber: true, width: '70px', render: ({ running }) => countText(running) },
    {
      ...{ title: 'p50', isNumber: true, width: '80px', hiddenBelow: 'narrow' },
      render: (origin) => latencyText(origin, 'p50Ms'),
    },
    {
      ...{ title: 'p99', isNumber: true, width: '80px', hiddenBelow: 'medium' },
      render: (origin) => latencyText(origin, 'p99Ms'),
    },
    { title: 'Waiting', isNumber: true, width: '80px', render: ({ waiting }) => countText(waiting) },
    {
      ...{ title: 'At a time', isNumber: true, width: '90px', hiddenBelow: 'medium' },
      render: ({ concurrency }) => noneText(concurrency),
    },
    {
      ...{ title: 'Rate', width: '90px', hiddenBelow: 'medium' },
      render: ({ rate }) => rateText(rate),
    },
    {
      ...{ title: 'Change', width: '220px', hiddenBelow: 'narrow' },
      render: (origin) => (
        <span class="actions">
          {may('admin') && (
            <button type="button" class="button button-small" onClick={() => limit(origin)}>
              Limits
            </button>
          )}
          {origin.state !== 'closed' && <Reset origin={origin.origin} onDone={refresh} />}
        </span>
      ),
    },
  ];
}

function latencyText({ latency }: OriginView, which: 'p50Ms' | 'p99Ms'): string {
  return latency === null ? '–' : durationText(latency[which]);
}

function Reset({ origin, onDone }: { readonly origin: string; readonly onDone: () => void }) {
  return (
    <ActionButton
      isSmall
      action={{
        label: 'Call again',
        method: 'POST',
        path: '/v1/origins/reset',
        body: { origin },
        cli: `punctual origin reset ${origin}`,
        scope: 'admin',
        done: `${origin} is called again.`,
        onDone,
      }}
    />
  );
}
