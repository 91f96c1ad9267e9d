/** A message of a stream of server-sent events. */
export interface StreamMessage {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Reads the messages of a stream; comments, which only show that it lives, are left out. */
export async function* readMessages(pieces: AsyncIterable<string>): AsyncGenerator<StreamMessage> {
  let rest = '';
  for await (const piece of pieces) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const message = { id: '', event: '', data: '' };
      for (const line of block.split('\n')) {
        const colon = line.indexOf(': ');
        const field = line.slice(0, colon);
        if (field === 'id' || field === 'event' || field === 'data') message[field] = line.slice(colon + 2);
      }
      if (message.event !== '') yield message;
    }
  }
}
