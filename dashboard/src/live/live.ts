import { computed, signal } from '@preact/signals';
import { requestHeaders } from '../api/client.js';
import { ROOT } from '../routing/root.js';
import { addMessages } from './batches.js';
import { streamEvents } from './event-stream.js';
import type { LiveMessage } from './messages.js';

/**
 * One stream of events for all tabs of a browser: with HTTP/1.1 a browser opens six connections to a host, so the streams of
 * six tabs would leave none for anything else. The tab that holds the lock has the stream and tells the others what it says;
 * when it is closed, the next one has the lock and goes on where the stream was.
 */

export { type Batch, onBatch, onEvents } from './batches.js';

type Connection = 'connecting' | 'open' | 'lost';

/** What the tab with the stream tells the others. */
type Told =
  | { readonly kind: 'messages'; readonly messages: readonly LiveMessage[] }
  | { readonly kind: 'connected'; readonly isOpen: boolean }
  /** Somebody new asks how it is. */
  | { readonly kind: 'ask' };

const state = signal<Connection>('connecting');
const heardAt = signal<number | null>(null);
const lag = signal(0);

/** Whether the stream is open. */
export const connection = computed(() => state.value);

/** How long the newest event took to come here, in milliseconds. */
export const lagMs = computed(() => lag.value);

/** When the stream last gave a sign of life, by the clock of the browser; null if it has not. */
export const lastHeard = computed(() => heardAt.value);

/** The least difference seen between the clocks of node and browser, with the way of the event. */
let leastDifferenceMs = Number.POSITIVE_INFINITY;

/** Listens for somebody until the returned function is called. */
export function startLive(listener: {
  readonly keyId: string | null;
  readonly tenant: string | null;
}): () => void {
  const over = new AbortController();
  const name = `punctual-live ${ROOT.href} ${listener.keyId} ${listener.tenant}`;
  const channel = new BroadcastChannel(name);
  let lastId: string | null = null;
  let isHolder = false;
  state.value = 'connecting';

  const receive = (told: Told) => {
    if (told.kind === 'messages') {
      lastId = told.messages.at(-1)?.id ?? lastId;
      noteLag(told.messages);
      addMessages(told.messages);
    } else if (told.kind === 'connected') noteConnection(told.isOpen);
    else if (isHolder) tell({ kind: 'connected', isOpen: state.value === 'open' });
  };
  const tell = (told: Told) => {
    if (!over.signal.aborted) channel.postMessage(told);
  };
  channel.onmessage = ({ data }: MessageEvent<Told>) => receive(data);
  tell({ kind: 'ask' });

  const both = (told: Told) => {
    receive(told);
    tell(told);
  };
  const hold = async () => {
    isHolder = true;
    await streamEvents(
      requestHeaders('GET'),
      {
        lastId: () => lastId,
        messages: (messages) => both({ kind: 'messages', messages }),
        connected: (isOpen) => both({ kind: 'connected', isOpen }),
      },
      over.signal,
    );
  };
  // Where pages are not served securely there are no locks, and each tab has a stream of its own.
  const locks = 'locks' in navigator ? navigator.locks : null;
  const held = locks ? locks.request(name, { signal: over.signal }, hold) : hold();
  // Breaking it off is how it ends.
  held.catch(() => undefined);
  return () => {
    over.abort();
    channel.close();
  };
}

function noteConnection(isOpen: boolean): void {
  if (isOpen) heardAt.value = Date.now();
  state.value = isOpen ? 'open' : 'lost';
}

function noteLag(messages: readonly LiveMessage[]): void {
  const newest = messages.findLast(({ kind }) => kind === 'event' || kind === 'sum');
  if (!newest) return;
  const at = Date.parse(
    newest.kind === 'event' ? newest.event.at : newest.kind === 'sum' ? newest.sum.at : '',
  );
  if (Number.isNaN(at)) return;
  const difference = Date.now() - at;
  leastDifferenceMs = Math.min(leastDifferenceMs, difference);
  // The clocks may differ by anything; what an event took longer than the fastest one is lag.
  lag.value = Math.max(0, difference - Math.max(0, leastDifferenceMs));
}
