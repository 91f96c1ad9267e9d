/**
 * An answer that is JSON text already. Stored JSON is sent as its text: parsing it only to serialize it again would be
 * the largest cost of an answer, and a small text can become a huge value.
 */
export abstract class JsonText {
  abstract readonly text: string;

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** An answer as a value, or as the JSON text of one. */
export type Answered<T> = T | JsonText;

/** Any answer as JSON text. */
export function writeJson(answer: unknown): string {
  return answer instanceof JsonText ? answer.text : JSON.stringify(answer);
}

/** From this length on, encoding a text at once is cheaper than leaving it to the socket. */
const LONG_TEXT = 4 * 1024;

/** Any answer as JSON for a socket. */
export function encodeJson(answer: unknown): string | Buffer {
  const text = writeJson(answer);
  return text.length < LONG_TEXT ? text : Buffer.from(text);
}
