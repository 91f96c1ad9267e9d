import { describe, expect, it } from 'vitest';
import { EventCount } from './event-count.js';

const STREAM = Buffer.from(
  [
    'retry: 1000\nid: 7.1\nevent: hello\ndata: {"id":"7.1"}\n\n',
    'id: 7.2\nevent: job.started\ndata: {"task":"event: job."}\n\n',
    'id: 7.3\nevent: queue.paused\ndata: {}\n\n',
    'id: 7.4\nevent: job.succeeded\ndata: {}\n\n',
  ].join(''),
);

describe('counting events', () => {
  it('counts events of jobs alone', () => {
    const count = new EventCount();
    count.take(STREAM);
    expect(count.events).toBe(2);
  });

  it('counts each event once, wherever the stream is cut', () => {
    for (let size = 1; size <= STREAM.length; size++) {
      const count = new EventCount();
      for (let from = 0; from < STREAM.length; from += size) count.take(STREAM.subarray(from, from + size));
      expect(count.events).toBe(2);
    }
  });
});
