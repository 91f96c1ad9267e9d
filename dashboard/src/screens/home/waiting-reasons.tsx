import type { WaitingView } from '../../../../src/core/wire.js';
import { countText, durationText } from '../../parts/duration-text.js';
import { Panel } from '../../parts/panel.js';
import { addressOf } from '../../routing/root.js';
import { useLater, useWaiting } from './figures.js';
import { WAITING_WORDS } from './waiting-words.js';

/** Why jobs wait, the most frequent reason first, and in which queues. */
export function WaitingReasons() {
  const waiting = useWaiting();
  const later = useLater();
  return (
    <Panel title="Why are they waiting" resource={waiting} class="home-half">
      {(now) => <Reasons reasons={reasonsOf(now, later.data.value?.later)} />}
    </Panel>
  );
}

/** Why some jobs wait. */
interface Reason {
  readonly words: string;
  readonly jobs: number;
  /** Whether there may be more. */
  readonly isLeast: boolean;
  readonly oldestReadyMs: number;
  readonly queues: WaitingView['data'][number]['queues'];
  /** The list of such jobs. */
  readonly path?: string;
}

function reasonsOf({ data, complete }: WaitingView, later: WaitingView['later']): readonly Reason[] {
  const live = data.map(({ reason, ...rest }): Reason => {
    return { words: WAITING_WORDS[reason] ?? reason, isLeast: !complete, ...rest };
  });
  if (!later) return live;
  const other = { isLeast: !later.complete, oldestReadyMs: 0, queues: [] };
  const notLive: readonly Reason[] = [
    {
      words: 'Steps and batches that wait for others',
      jobs: later.blocked,
      path: '/jobs?state=blocked',
      ...other,
    },
    { words: 'On hold', jobs: later.held, ...other },
    { words: 'Not due for long', jobs: later.notDue, ...other },
  ];
  const all = [...live, ...notLive.filter(({ jobs }) => jobs > 0)];
  return all.sort((a, b) => b.jobs - a.jobs);
}

function Reasons({ reasons }: { readonly reasons: readonly Reason[] }) {
  if (reasons.length === 0) return <p class="soft">Nothing waits: every job that is due has started.</p>;
  const most = reasons.reduce((top, { jobs }) => Math.max(top, jobs), 1);
  return (
    <ul class="reasons">
      {reasons.map(({ words, jobs, isLeast, oldestReadyMs, queues, path }) => (
        <li key={words}>
          <span class="reason-words">
            {path === undefined ? words : <a href={addressOf(path)}>{words}</a>}
          </span>
          <span class="figure reason-count">{countText(jobs) + (isLeast ? '+' : '')}</span>
          <meter class="reason-bar" min={0} max={most} value={jobs} aria-label={`${words}: ${jobs}`} />
          {(oldestReadyMs > 0 || queues.length > 0) && (
            <span class="reason-more">
              {oldestReadyMs > 0 && <>oldest {durationText(oldestReadyMs)} · </>}
              {queues.map(({ queue, jobs: some }, i) => (
                <span key={queue}>
                  {i > 0 && ', '}
                  <a href={addressOf(`/queues/${encodeURIComponent(queue)}`)}>{queue}</a> {countText(some)}
                </span>
              ))}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
