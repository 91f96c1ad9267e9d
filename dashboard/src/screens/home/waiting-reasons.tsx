import type { WaitingView } from '../../../../src/core/wire.js';
import { countText, durationText } from '../../parts/duration-text.js';
import { Panel } from '../../parts/panel.js';
import { addressOf } from '../../routing/root.js';
import { useWaiting } from './figures.js';
import { WAITING_WORDS } from './waiting-words.js';

/** Why jobs wait, the most frequent reason first, and in which queues. */
export function WaitingReasons() {
  const waiting = useWaiting();
  return (
    <Panel title="Why are they waiting" resource={waiting} class="home-half">
      {(data) => (data.data.length === 0 ? <NothingWaits /> : <Reasons waiting={data} />)}
    </Panel>
  );
}

function NothingWaits() {
  return <p class="soft">Nothing waits: every job that is due has started.</p>;
}

function Reasons({ waiting }: { readonly waiting: WaitingView }) {
  const most = waiting.data.reduce((top, { jobs }) => Math.max(top, jobs), 1);
  return (
    <ul class="reasons">
      {waiting.data.map(({ reason, jobs, oldestReadyMs, queues }) => (
        <li key={reason}>
          <span class="reason-words">{WAITING_WORDS[reason] ?? reason}</span>
          <span class="figure reason-count">{countText(jobs)}</span>
          <meter
            class="reason-bar"
            min={0}
            max={most}
            value={jobs}
            aria-label={`${WAITING_WORDS[reason] ?? reason}: ${jobs}`}
          />
          <span class="reason-more">
            {oldestReadyMs > 0 && <>oldest {durationText(oldestReadyMs)} · </>}
            {queues.map(({ queue, jobs: some }, i) => (
              <span key={queue}>
                {i > 0 && ', '}
                <a href={addressOf(`/queues/${encodeURIComponent(queue)}`)}>{queue}</a> {countText(some)}
              </span>
            ))}
          </span>
        </li>
      ))}
    </ul>
  );
}
