/** The state of something, as a coloured word. */

const TONES: Readonly<Record<string, Tone>> = {
  ...{ blocked: 'still', pending: 'still', ready: 'busy', running: 'busy', succeeded: 'good' },
  ...{ failed: 'bad', cancelled: 'still', skipped: 'still', retrying: 'warn', waiting: 'still' },
  ...{
    hold: 'held',
    held: 'held',
    paused: 'held',
    stopping: 'warn',
    late: 'warn',
    missed: 'bad',
    ran: 'good',
  },
  ...{ alive: 'good', draining: 'warn', dead: 'bad', open: 'bad', closed: 'good', probing: 'warn' },
  ...{ 'timed-out': 'bad', lost: 'warn' },
};

/** What a colour says: all well, failed, needs attention, at work, nothing going on, stopped by somebody. */
export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'still' | 'held';

interface StateBadgeProps {
  readonly state: string;
  /** What it says, if that is not the state. */
  readonly text?: string;
  readonly tone?: Tone;
}

/** The tone of a state. */
export function toneOf(state: string): Tone {
  return TONES[state] ?? 'still';
}

export function StateBadge({ state, text = state, tone = toneOf(state) }: StateBadgeProps) {
  return <span class={`badge badge-${tone}`}>{text}</span>;
}
