/** Shorter values are no secrets, and replacing them would make every text unreadable. */
const LEAST_LENGTH = 4;
/** What JSON, as any program may write it, does not show as it is. */
const NEEDS_ESCAPES = /[^\w .,:;=+*~!@#$%^()[\]{}|?-]/;

/**
 * Takes values that must not be kept out of what is kept. It finds them as they were sent, and as JSON writes them; a receiver that
 * encodes what it was sent in another way is beyond it.
 */
export class Redaction {
  /** The longest first, because one value may be a part of another. */
  readonly #entries: readonly { readonly value: string; readonly mark: string }[];

  /** From each value to the mark that takes its place. */
  constructor(values: ReadonlyMap<string, string>) {
    const entries: { readonly value: string; readonly mark: string }[] = [];
    for (const [given, mark] of values)
      for (const value of formsOf(given)) if (value.length >= LEAST_LENGTH) entries.push({ value, mark });
    this.#entries = entries.length < 2 ? entries : entries.sort((a, b) => b.value.length - a.value.length);
  }

  /** The length of the longest value: so much of one may stand at the end of a text that was cut. */
  get longest(): number {
    return this.#entries[0]?.value.length ?? 0;
  }

  /** The text with marks in the places of the values. */
  text(text: string): string {
    let redacted = text;
    for (const { value, mark } of this.#entries)
      if (redacted.length >= value.length) redacted = redacted.replaceAll(value, () => mark);
    return redacted;
  }

  /** Whether a value may be in this JSON: it is there as it is, or something is escaped. */
  isNeeded(json: string): boolean {
    return json.includes('\\') || this.#entries.some(({ value }) => json.includes(value));
  }

  /** The same for all texts in a JSON value. */
  json(value: unknown): unknown {
    if (this.#entries.length === 0) return value;
    if (typeof value === 'string') return this.text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((child) => this.json(child));
    return Object.fromEntries(
      Object.entries(value).map(([name, child]) => [this.text(name), this.json(child)]),
    );
  }
}

/** A value as it is, as JSON writes it, and as JSON writes a text that holds JSON: receivers that echo a body do that. */
function formsOf(value: string): string[] {
  if (!NEEDS_ESCAPES.test(value)) return [value];
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
  return [...new Set([value, escaped(value), escaped(escaped(value))])];
}
