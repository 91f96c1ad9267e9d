import { expect, it } from 'vitest';
import { TimeSlice } from './time-slice.js';

/** Blocks the event loop. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

async function workFor(ms: number, onPiece: () => void = () => undefined): Promise<void> {
  const slice = new TimeSlice();
  for (let done = 0; done < ms; done += 1) {
    block(1);
    onPiece();
    if (slice.isOver) await slice.next();
  }
}

it('much work at once blocks the event loop for no longer than one piece of it', async () => {
  const WORKS = 30;
  let pieces = 0;
  let most = 0;
  let isDone = false;
  const beat = () => {
    most = Math.max(most, pieces);
    pieces = 0;
    if (!isDone) setImmediate(beat);
  };
  const works = Array.from({ length: WORKS }, () =>
    workFor(30, () => {
      pieces += 1;
    }),
  );
  // Each does one piece before it can look at the clock for the first time.
  pieces = 0;
  setImmediate(beat);
  await Promise.all(works);
  isDone = true;
  // Pieces of a millisecond each, in a budget of eight; without a shared one it would be eight of every work.
  expect(most).toBeLessThanOrEqual(WORKS);
});

it('those who work take turns', async () => {
  const order: string[] = [];
  await Promise.all([workFor(40, () => order.push('a')), workFor(40, () => order.push('b'))]);
  expect(order.indexOf('b')).toBeLessThan(order.lastIndexOf('a'));
  expect(order.indexOf('a')).toBeLessThan(order.lastIndexOf('b'));
});

it('little work is done before anybody else runs', async () => {
  let others = 0;
  setImmediate(() => {
    others += 1;
  });
  await workFor(2);
  expect(others).toBe(0);
});
