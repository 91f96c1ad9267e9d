import { expect, it } from 'vitest';
import { MessageReader } from './messages.js';

const STREAM = `retry: 1000
id: 7.1
event: hello
data: {"id":"7.1","resumed":false}

:

id: 7.2
event: job.failed
data: {"id":"7.2","type":"job.failed","job":"a","queue":"<b>\\u00e9</b>"}

id: 7.9
event: sum
data: {"id":"7.9","at":"2026-11-17T22:00:00.000Z","events":{"job.started":5}}

`;

it('messages are the same however the stream is cut into pieces', () => {
  const whole = new MessageReader().read(STREAM);
  expect(whole.map(({ kind, id }) => [kind, id])).toEqual([
    ['hello', '7.1'],
    ['event', '7.2'],
    ['sum', '7.9'],
  ]);
  expect(whole[0]).toMatchObject({ resumed: false });
  expect(whole[1]).toMatchObject({ event: { queue: '<b>é</b>' } });
  expect(whole[2]).toMatchObject({ sum: { events: { 'job.started': 5 } } });
  for (const size of [1, 7, 50]) {
    const reader = new MessageReader();
    const pieces = STREAM.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
    expect(pieces.flatMap((piece) => reader.read(piece))).toEqual(whole);
  }
});
