import { noteSignedOut, requestUrl } from '../api/client.js';
import { type LiveMessage, MessageReader } from './messages.js';

/** One stream of events from the node: opened again when it breaks, where it was. */

/** How many events a second are told one by one; of more, their sums. */
const SAMPLE = 200;
/** A stream says something every 15 seconds; after this silence it is taken for dead. */
const SILENCE_MS = 40_000;
/** A node waits five seconds for the leader before it answers. */
const OPENING_MS = 8_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** What the stream tells whoever opened it. */
export interface StreamListener {
  /** The id of the last message that was seen; null if there is none. */
  lastId(): string | null;
  messages(all: readonly LiveMessage[]): void;
  /** Whether the stream is open; also told when it shows by a heartbeat that it lives. */
  connected(isOpen: boolean): void;
}

/** Listens until the signal aborts. */
export async function streamEvents(
  headers: Readonly<Record<string, string>>,
  listener: StreamListener,
  over: AbortSignal,
): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  while (!over.aborted) {
    try {
      const wasOpen = await readOnce(headers, listener, over);
      if (wasOpen) pause = FIRST_PAUSE_MS;
    } catch {
      // Whatever broke the stream, opening it again is all that can be done.
    }
    if (over.aborted) return;
    listener.connected(false);
    // Pages that lost their node together should not come back together.
    await untilOver(pause * (0.5 + Math.random()), over);
    pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
  }
}

async function readOnce(
  headers: Readonly<Record<string, string>>,
  listener: StreamListener,
  over: AbortSignal,
): Promise<boolean> {
  const silent = new AbortController();
  let alarm: number | undefined;
  const stillThere = (forMs = SILENCE_MS) => {
    clearTimeout(alarm);
    alarm = window.setTimeout(() => silent.abort(), forMs);
  };
  stillThere(OPENING_MS);
  try {
    const lastId = listener.lastId();
    const response = await fetch(requestUrl('/v1/events', { sample: SAMPLE }), {
      headers: { ...headers, ...(lastId !== null && { 'last-event-id': lastId }) },
      signal: AbortSignal.any([over, silent.signal]),
    });
    if (response.status === 401) noteSignedOut();
    if (!response.ok || !response.body) return false;
    stillThere();
    listener.connected(true);
    const messages = new MessageReader();
    const decoder = new TextDecoder();
    const body = response.body.getReader();
    for (let part = await body.read(); !part.done; part = await body.read()) {
      stillThere();
      const found = messages.read(decoder.decode(part.value, { stream: true }));
      listener.connected(true);
      if (found.length > 0) listener.messages(found);
    }
    return true;
  } finally {
    clearTimeout(alarm);
  }
}

function untilOver(ms: number, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      over.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    over.addEventListener('abort', end);
  });
}
