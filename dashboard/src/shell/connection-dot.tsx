import { may } from '../api/session.js';
import { connection, lagMs } from '../live/live.js';

const WORDS = {
  connecting: 'Connecting …',
  open: 'Live',
  lost: 'Connection lost; trying again …',
} as const;

/** Whether what is shown is up to date: the state of the stream, and how long news take. */
export function ConnectionDot() {
  if (!may('read')) return null;
  const state = connection.value;
  const lag = lagMs.value;
  const late = state === 'open' && lag >= 1_000 ? ` · ${(lag / 1_000).toFixed(1)} s behind` : '';
  const exact = state === 'open' ? `News come within ${Math.max(1, Math.round(lag))} ms.` : WORDS[state];
  return (
    <span class={`dot dot-${state}`} role="status" title={exact}>
      <span class="dot-mark" aria-hidden="true" />
      <span class={state === 'lost' ? 'dot-words' : 'dot-words dot-words-short'}>
        {WORDS[state]}
        {late}
      </span>
    </span>
  );
}
