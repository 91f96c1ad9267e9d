import { exactText, relativeText } from './duration-text.js';
import { eachMinute, eachSecond } from './now.js';

interface MomentProps {
  readonly at: string | number;
}

const MINUTE_MS = 60_000;

/** A moment as how long ago it was, with the exact one on hover. */
export function Moment({ at }: MomentProps) {
  const time = typeof at === 'number' ? at : Date.parse(at);
  const isYoung = Math.abs(time - eachSecond.peek()) < MINUTE_MS;
  const now = isYoung ? eachSecond.value : eachMinute.value;
  return (
    <time dateTime={new Date(time).toISOString()} title={exactText(time)}>
      {relativeText(time, now)}
    </time>
  );
}

/** How long something has lasted that began at a moment and goes on. */
export function Since({ at }: MomentProps) {
  const time = typeof at === 'number' ? at : Date.parse(at);
  const isYoung = Math.abs(time - eachSecond.peek()) < MINUTE_MS;
  const now = isYoung ? eachSecond.value : eachMinute.value;
  return (
    <time dateTime={new Date(time).toISOString()} title={exactText(time)}>
      {relativeText(time, Math.max(now, time)).replace(/ ago$/, '')}
    </time>
  );
}
