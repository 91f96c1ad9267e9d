import { useState } from 'preact/hooks';
import type { QueueHistoryView, QueueView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { may } from '../../api/session.js';
import { CopyAs } from '../../parts/action.js';
import { Chart } from '../../parts/chart.js';
import { countText, durationText, shortCountText } from '../../parts/duration-text.js';
import { Facts } from '../../parts/facts.js';
import { rateText } from '../../parts/limit-text.js';
import { Moment } from '../../parts/moment.js';
import { Panel, ScreenTop } from '../../parts/panel.js';
import { quoted } from '../../parts/quoted.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import type { ScreenProps } from '../../routing/routes.js';
import { QueueLimitsDialog } from './queue-limits.js';
import { QueuePause } from './queue-pause.js';

/** How far back, in minutes. */
const SPANS = { '1 h': 60, '6 h': 360, '1 d': 1_440 } as const;

/** One queue with its history. */
export default function QueueScreen({ params: { name = '' } }: ScreenProps) {
  const path = `/v1/queues/${encodeURIComponent(name)}`;
  const queue = useResource<QueueView>(path, { everyMs: 3_000, events: ['queue.*'] });
  const [isLimiting, setLimiting] = useState(false);
  const view = queue.data.value;
  const refresh = () => void queue.refresh();
  return (
    <>
      <ScreenTop title={<span class="mono">{name}</span>}>
        {view && <QueuePause queue={view} onDone={refresh} />}
        {view && may('admin') && (
          <button type="button" class="button" onClick={() => setLimiting(true)}>
            Limits
          </button>
        )}
        <a class="button" href={addressOf(`/jobs?queue=${encodeURIComponent(name)}`)}>
          Its jobs
        </a>
        <CopyAs method="GET" path={path} cli={`punctual queue get ${quoted(name)}`} />
      </ScreenTop>
      <div class="stack">
        <div class="grid">
          <Panel title="Now" resource={queue}>
            {(now) => <Now queue={now} />}
          </Panel>
          <Panel title="Limits" resource={queue}>
            {(now) => <Limits queue={now} />}
          </Panel>
        </div>
        <History name={name} />
      </div>
      {isLimiting && view && (
        <QueueLimitsDialog queue={view} onClose={() => setLimiting(false)} onDone={refresh} />
      )}
    </>
  );
}

function Now({ queue }: { readonly queue: QueueView }) {
  const { paused, ready, more, oldestReadyMs, running, upcoming, createdAt } = queue;
  return (
    <Facts
      facts={[
        [
          'State',
          <StateBadge key="state" state={paused ? 'paused' : 'open'} tone={paused ? 'held' : 'good'} />,
        ],
        ['Ready', `${countText(ready)}${more ? ', and more outside of memory' : ''}`],
        ['Oldest ready', oldestReadyMs === null ? null : `for ${durationText(oldestReadyMs)}`],
        ['Running', countText(running)],
        ['Due soon', countText(upcoming)],
        ['First used', <Moment key="at" at={createdAt} />],
      ]}
    />
  );
}

function Limits({ queue }: { readonly queue: QueueView }) {
  const { concurrency, keyConcurrency, rate, weight } = queue;
  return (
    <Facts
      facts={[
        ['Jobs at a time', concurrency === null ? 'as many as workers take' : countText(concurrency)],
        ['Of one concurrency key', countText(keyConcurrency)],
        ['Rate of starts', rateText(rate)],
        ['Weight', `${weight}, beside the other queues of the tenant`],
      ]}
    />
  );
}

function History({ name }: { readonly name: string }) {
  const [span, setSpan] = useState<keyof typeof SPANS>('1 h');
  const path = `/v1/queues/${encodeURIComponent(name)}/history?minutes=${SPANS[span]}`;
  const history = useResource<QueueHistoryView>(path, { everyMs: 60_000 });
  const choice = (
    <fieldset class="button-group">
      <legend class="visually-hidden">How far back</legend>
      {(Object.keys(SPANS) as (keyof typeof SPANS)[]).map((each) => (
        <button
          key={each}
          type="button"
          class="button button-small"
          aria-pressed={each === span}
          onClick={() => setSpan(each)}
        >
          {each}
        </button>
      ))}
    </fieldset>
  );
  return (
    <Panel title="By the minute" resource={history} aside={choice} class="queue-history">
      {({ data }) => {
        const times = data.map(({ minute }) => Date.parse(minute) / 1_000);
        if (data.length === 0) return <p class="soft">Nothing has happened here in this time.</p>;
        return (
          <div class="grid">
            <Chart
              label="Attempts that ended, by the minute"
              times={times}
              series={[
                {
                  name: 'ended',
                  values: data.map(({ ended }) => ended),
                  colour: '--chart-1',
                  isFilled: true,
                },
                { name: 'ready', values: data.map(({ ready }) => ready), colour: '--chart-2' },
              ]}
              format={shortCountText}
            />
            <Chart
              label="How long the next job had been due, by the minute"
              times={times}
              series={[
                {
                  name: 'oldest',
                  values: data.map(({ oldestReadyMs }) => oldestReadyMs),
                  colour: '--chart-3',
                },
              ]}
              format={durationText}
            />
          </div>
        );
      }}
    </Panel>
  );
}
