/** Shorter values are no secrets, and replacing them would make every text unreadable. */
const LEAST_LENGTH = 4;
/** Characters that JSON and URLs show as they are, whoever writes them. */
const PLAIN = /^[\w.~-]*$/;
/** What else may be written in another way: one character, or backslashes, of which JSON makes more. */
const SPECIAL = /\\+|[^\w~-]/gu;
/** The most characters that take the place of one: that of a character of four bytes in a URL. */
const LONGEST_ESCAPE = 12;
/** JSON has these short forms for control characters. */
const SHORT_FORMS: Readonly<Record<string, string>> = {
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};

interface Entry {
  readonly value: string;
  readonly mark: string;
  /** Finds the value however it is written; made when it is first needed, and null if there is one way only. */
  pattern: RegExp | null | undefined;
}

/**
 * Takes values that must not be kept out of what is kept. It finds them as they were sent, as any program writes them in JSON, also
 * in JSON inside of a text of JSON, and as URLs write them; a receiver that encodes what it was sent in another way is beyond it.
 */
export class Redaction {
  /** The longest first, because one value may be a part of another. */
  readonly #entries: readonly Entry[];

  /** Each value with the mark that takes its place. */
  constructor(values: Iterable<readonly [value: string, mark: string]>) {
    const entries: Entry[] = [];
    for (const [value, mark] of values) {
      if (value.length >= LEAST_LENGTH) entries.push({ value, mark, pattern: undefined });
    }
    this.#entries = entries.sort((a, b) => b.value.length - a.value.length);
  }

  /** The most characters that a value may take: so many of it may stand at the end of a text that was cut. */
  get longest(): number {
    return this.#entries.reduce((longest, { value }) => Math.max(longest, lengthOf(value)), 0);
  }

  /** The text with marks in the places of the values. */
  text(text: string): string {
    if (!this.#mayHold(text)) return text;
    let redacted = text;
    const isEscaped = mayBeEscaped(text);
    for (const entry of this.#entries) {
      redacted = redacted.replaceAll(entry.value, () => entry.mark);
      if (!isEscaped) continue;
      entry.pattern ??= patternOf(entry.value);
      if (entry.pattern) redacted = redacted.replace(entry.pattern, () => entry.mark);
    }
    return redacted;
  }

  /** Whether a value may be in this JSON: it is there as it is, or something is escaped. */
  isNeeded(json: string): boolean {
    if (!this.#mayHold(json)) return false;
    return mayBeEscaped(json) || this.#entries.some(({ value }) => json.includes(value));
  }

  /** Whether a text is long enough for the shortest value: however a value is written, it takes no less than its own length. */
  #mayHold(text: string): boolean {
    const shortest = this.#entries.at(-1);
    return shortest !== undefined && text.length >= shortest.value.length;
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

function mayBeEscaped(text: string): boolean {
  return text.includes('\\') || text.includes('%');
}

/** The length of a value in its longest form. */
function lengthOf(value: string): number {
  return PLAIN.test(value) ? value.length : value.length * LONGEST_ESCAPE;
}

/**
 * Finds a value in all of its forms. Every repetition in it has a bound, so that no answer can make the search slow: JSON in JSON
 * has up to three backslashes before a character, and four for each one.
 */
function patternOf(value: string): RegExp | null {
  if (PLAIN.test(value)) return null;
  const source = value.replace(SPECIAL, (part: string, at: number) => {
    if (part.startsWith('\\')) {
      const many = part.length;
      return `(?:\\\\{${many},${4 * many}}|(?:\\\\{1,3}u005[cC]){${many}}|(?:%5[cC]){${many}})`;
    }
    // Behind a backslash it would be unclear to which of the two the next one belongs.
    const before = value[at - 1] === '\\' ? '' : '\\\\{0,3}';
    const short = SHORT_FORMS[part];
    const forms = [
      `${before}${literal(part)}`,
      Array.from({ length: part.length }, (_, i) => `\\\\{1,3}u${unitOf(part, i)}`).join(''),
      ...(short === undefined ? [] : [`\\\\{1,3}${short}`]),
      percentOf(part),
    ];
    return `(?:${forms.join('|')})`;
  });
  return new RegExp(source, 'g');
}

function literal(part: string): string {
  return Array.from(
    { length: part.length },
    (_, i) => `\\u${part.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('');
}

function unitOf(part: string, index: number): string {
  return inBothCases(part.charCodeAt(index).toString(16).padStart(4, '0'));
}

function percentOf(part: string): string {
  return Array.from(
    Buffer.from(part, 'utf8'),
    (byte) => `%${inBothCases(byte.toString(16).padStart(2, '0'))}`,
  ).join('');
}

function inBothCases(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}
