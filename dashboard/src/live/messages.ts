import type { PunctualEvent } from '../../../src/core/events.js';

/** What the stream of events says, apart from how it comes. */

/** An event of the API, or one of the messages about the stream itself. */
export type LiveMessage =
  /** The stream has begun; unless it goes on where the page was, nobody knows what happened before. */
  | { readonly kind: 'hello'; readonly id: string; readonly resumed: boolean }
  | { readonly kind: 'reset'; readonly id: string }
  | { readonly kind: 'event'; readonly id: string; readonly event: PunctualEvent }
  | { readonly kind: 'sum'; readonly id: string; readonly sum: EventSum };

/** Events of which only the number is told, because there are more than a page can show. */
export interface EventSum {
  readonly at: string;
  /** How many there were of each type besides those that were told one by one. */
  readonly events: Readonly<Record<string, number>>;
}

/** Takes apart the text of a stream of server-sent events as it comes. */
export class MessageReader {
  private rest = '';

  /** The whole messages of a chunk and of what was left of the ones before. */
  read(chunk: string): LiveMessage[] {
    const parts = (this.rest + chunk).split('\n\n');
    this.rest = parts.pop()!;
    return parts.flatMap((part) => {
      const message = messageOf(part);
      return message ? [message] : [];
    });
  }
}

function messageOf(text: string): LiveMessage | null {
  let id = '';
  let type = '';
  let data = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) type = line.slice(7);
    else if (line.startsWith('data: ')) data = line.slice(6);
  }
  if (id === '' || type === '') return null;
  if (type === 'hello')
    return { kind: type, id, resumed: (JSON.parse(data) as { resumed: boolean }).resumed };
  if (type === 'reset') return { kind: type, id };
  if (type === 'sum') return { kind: 'sum', id, sum: JSON.parse(data) as EventSum };
  return { kind: 'event', id, event: JSON.parse(data) as PunctualEvent };
}
