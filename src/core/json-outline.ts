/**
 * Where the values of a JSON text lie, without building them: parts can be cut out of the text to the letter, so no digit
 * of a number is lost. The text must be valid JSON, which whoever took it in has checked.
 *
 * One pass notes where each object and array ends and how deep it is nested. After that, what an object or array holds is
 * found without scanning its parts again, and each is looked into once: any number of paths costs as much as one pass.
 */

/** The characters from `start` to before `end`. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/** The outline of one text. Values are named by the position of their first character. */
export class JsonOutline {
  /** Where the value of the whole text begins. */
  readonly root: number;
  /** For the first character of each object and array, the position behind its last. */
  private readonly ends: Int32Array;
  /** For the same character, how many levels of objects and arrays it is, itself included. */
  private readonly levels: Uint32Array;
  private readonly members = new Map<number, ReadonlyMap<string, number>>();
  private readonly items = new Map<number, readonly number[]>();

  constructor(readonly text: string) {
    this.ends = new Int32Array(text.length);
    this.levels = new Uint32Array(text.length);
    this.root = skipBlanks(text, 0);
    this.measure();
  }

  isObject(start: number): boolean {
    return this.text.charCodeAt(start) === OPEN_OBJECT;
  }

  isArray(start: number): boolean {
    return this.text.charCodeAt(start) === OPEN_ARRAY;
  }

  isText(start: number): boolean {
    return this.text.charCodeAt(start) === QUOTE;
  }

  /** How many levels of objects and arrays a value is: 0 for a number, 1 for a list of numbers. */
  depthOf(start: number): number {
    return this.levels[start] ?? 0;
  }

  /** The position behind the value. */
  endOf(start: number): number {
    return this.ends[start] || endOfScalar(this.text, start);
  }

  /** The values of an object by their keys. Of a key that is given twice the last counts, as with JSON.parse. */
  membersOf(start: number): ReadonlyMap<string, number> {
    let members = this.members.get(start);
    if (!members) {
      members = this.readMembers(start);
      this.members.set(start, members);
    }
    return members;
  }

  /** The values of an array. */
  itemsOf(start: number): readonly number[] {
    let items = this.items.get(start);
    if (!items) {
      items = this.readItems(start);
      this.items.set(start, items);
    }
    return items;
  }

  /** The value under a key of an object or an index of an array; null if there is none. */
  childOf(start: number, key: string): number | null {
    if (this.isObject(start)) return this.membersOf(start).get(key) ?? null;
    if (this.isArray(start) && INDEX.test(key)) return this.itemsOf(start)[Number(key)] ?? null;
    return null;
  }

  private measure(): void {
    const { text, ends, levels } = this;
    const open: number[] = [];
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) at = endOfText(text, at) - 1;
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        open.push(at);
        levels[at] = 1;
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
        const start = open.pop()!;
        const around = open[open.length - 1];
        ends[start] = at + 1;
        if (around !== undefined) levels[around] = Math.max(levels[around]!, levels[start]! + 1);
      }
    }
  }

  private readMembers(start: number): ReadonlyMap<string, number> {
    const { text } = this;
    const members = new Map<string, number>();
    let at = skipBlanks(text, start + 1);
    while (text.charCodeAt(at) === QUOTE) {
      const end = endOfText(text, at);
      const key = JSON.parse(text.slice(at, end)) as string;
      const value = skipBlanks(text, skipOne(text, end, COLON));
      members.set(key, value);
      at = skipBlanks(text, skipOne(text, this.endOf(value), COMMA));
    }
    return members;
  }

  private readItems(start: number): readonly number[] {
    const { text } = this;
    const items: number[] = [];
    let at = skipBlanks(text, start + 1);
    while (text.charCodeAt(at) !== CLOSE_ARRAY) {
      items.push(at);
      at = skipBlanks(text, skipOne(text, this.endOf(at), COMMA));
    }
    return items;
  }
}

/** An index of an array as paths spell it. */
const INDEX = /^(0|[1-9]\d{0,8})$/;

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}

/** Behind the given sign, if it is the next one. */
function skipOne(text: string, from: number, sign: number): number {
  const at = skipBlanks(text, from);
  return text.charCodeAt(at) === sign ? at + 1 : at;
}

function endOfText(text: string, start: number): number {
  let at = start + 1;
  for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
    at += code === BACKSLASH ? 2 : 1;
  }
  return at + 1;
}

function endOfScalar(text: string, start: number): number {
  if (text.charCodeAt(start) === QUOTE) return endOfText(text, start);
  let at = start;
  while (at < text.length && !isBehindScalar(text.charCodeAt(at))) at += 1;
  return at;
}

function isBehindScalar(code: number): boolean {
  return code <= SPACE || code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT;
}
