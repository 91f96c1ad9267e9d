import type { QueueHistoryView, QueueView } from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { countText, shortDurationText } from '../../parts/duration-text.js';
import { Panel } from '../../parts/panel.js';
import { Sparkline } from '../../parts/sparkline.js';
import { StateBadge } from '../../parts/state-badge.js';
import { addressOf } from '../../routing/root.js';
import { useQueues } from './figures.js';

/** Each queue has a history of its own to read, once a minute. */
const MOST_SHOWN = 8;
const MINUTE_MS = 60_000;

const load = ({ ready, running, upcoming }: QueueView) => running * 1_000_000 + ready * 1_000 + upcoming;

/** The queues with the most to do, with what they did in the last hour. */
export function QueueActivity() {
  const queues = useQueues();
  return (
    <Panel
      title="Queues"
      aside={<a href={addressOf('/queues')}>All queues</a>}
      resource={queues}
      class="home-half"
    >
      {(page) =>
        page.data.length === 0 ? (
          <p class="soft">There is no queue yet; one comes into being with its first job.</p>
        ) : (
          <QueueTable queues={busiest(page.data)} />
        )
      }
    </Panel>
  );
}

/** Those with the most to do, in the order of their names, so that rows do not change places all the time. */
function busiest(queues: readonly QueueView[]): readonly QueueView[] {
  const most = [...queues].sort((a, b) => load(b) - load(a)).slice(0, MOST_SHOWN);
  return most.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function QueueTable({ queues }: { readonly queues: readonly QueueView[] }) {
  return (
    <table class="small-table queue-table">
      <thead>
        <tr>
          <th scope="col">Queue</th>
          <th scope="col" class="cell-number">
            Running
          </th>
          <th scope="col" class="cell-number">
            Ready
          </th>
          <th scope="col" class="cell-number queue-oldest">
            Oldest
          </th>
          <th scope="col">Last hour</th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <QueueRow key={queue.name} queue={queue} />
        ))}
      </tbody>
    </table>
  );
}

function QueueRow({ queue }: { readonly queue: QueueView }) {
  const { name, paused, running, ready, more, oldestReadyMs } = queue;
  const path = `/queues/${encodeURIComponent(name)}`;
  const history = useResource<QueueHistoryView>(`/v1${path}/history?minutes=60`, { everyMs: MINUTE_MS });
  const ended = history.data.value?.data.map((each) => each.ended) ?? [];
  const total = ended.reduce((sum, each) => sum + each, 0);
  return (
    <tr>
      <th scope="row">
        <a href={addressOf(path)} title={name}>
          {name}
        </a>{' '}
        {paused && <StateBadge state="paused" />}
      </th>
      <td class="cell-number">{countText(running)}</td>
      <td class="cell-number">
        {countText(ready)}
        {more && '+'}
      </td>
      <td class="cell-number queue-oldest">
        {oldestReadyMs === null ? '–' : shortDurationText(oldestReadyMs)}
      </td>
      <td class="queue-line">
        <Sparkline values={ended} label={`${countText(total)} attempts ended in the last hour`} />
      </td>
    </tr>
  );
}
