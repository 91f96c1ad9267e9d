import { durationText, exactText } from './duration-text.js';
import './span-bar.css';

/**
 * `scheduled` before something is due, `waiting` since, `backoff` after a failure, `claimed` between claim and start, `running`
 * an attempt.
 */
export type SpanKind = 'scheduled' | 'waiting' | 'backoff' | 'claimed' | 'running';

/** A part of the time that something took. */
export interface Span {
  readonly kind: SpanKind;
  readonly from: number;
  readonly to: number;
  /** How an attempt ended; null or missing while it runs. */
  readonly outcome?: string | null;
}

const WORDS: Readonly<Record<SpanKind, string>> = {
  scheduled: 'not due',
  waiting: 'waiting',
  claimed: 'claimed',
  running: 'running',
  backoff: 'backoff',
};

/** Which colour means what. */
export function SpanLegend({ kinds }: { readonly kinds: readonly SpanKind[] }) {
  return (
    <span class="span-legend" aria-hidden="true">
      {kinds.map((kind) => (
        <span key={kind}>
          <svg viewBox="0 0 10 10" aria-hidden="true">
            <rect class={`span-${kind}`} width="10" height="10" rx="2" />
          </svg>
          {WORDS[kind]}
        </span>
      ))}
    </span>
  );
}

interface SpanBarProps {
  readonly spans: readonly Span[];
  /** Where a moment is, from 0 to 1. */
  readonly scale: (at: number) => number;
}

const WIDTH = 1_000;
/** What took no time is still to be seen. */
const LEAST_WIDTH = 3;

/** Where the time of something went, as a bar with a colour for each part. */
export function SpanBar({ spans, scale }: SpanBarProps) {
  const words = spans.map((span) => `${wordOf(span)} ${durationText(span.to - span.from)}`).join(', ');
  return (
    <svg
      class="span-bar"
      viewBox={`0 0 ${WIDTH} 18`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words === '' ? 'not yet' : words}
    >
      {spans.map((span) => {
        const { kind, from, to, outcome = null } = span;
        const x = Math.min(scale(from) * WIDTH, WIDTH - LEAST_WIDTH);
        const isRunning = kind === 'running';
        return (
          <rect
            key={`${kind} ${from}`}
            class={isRunning && outcome !== null ? `span-running span-${outcome}` : `span-${kind}`}
            x={x.toFixed(1)}
            y={isRunning ? 1 : 5}
            width={Math.max(LEAST_WIDTH, scale(to) * WIDTH - x).toFixed(1)}
            height={isRunning ? 16 : 8}
          >
            <title>{`${wordOf(span)}: ${durationText(to - from)}, from ${exactText(from)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

function wordOf({ kind, outcome = null }: Span): string {
  return kind === 'running' && outcome !== null ? outcome : WORDS[kind];
}
