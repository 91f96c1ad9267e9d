/**
 * An answer that is JSON text already. What is stored as JSON goes out as the text it is: parsing it, only to write it
 * again, would cost most of all, and a small text can become an enormous value.
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
