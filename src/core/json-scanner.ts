import { invalid, PunctualError, pointerStep } from './errors.js';

/**
 * Scans the bytes of a JSON text without building values. It checks that the text is JSON, how deep it is nested and
 * how many values it holds, and records where the parts lie that are read one by one (`jobs` of a bulk) or kept as text
 * (`payload`). It can stop after any number of bytes and go on later, so that a large text does not block the event
 * loop.
 *
 * The text must be valid UTF-8: bytes above 0x7f are taken as parts of characters.
 */

/** The limits of a text, and which of its parts are treated apart from the rest. */
export interface JsonShape {
  readonly maxDepth: number;
  /** The field that is kept as text: of every item if there are `lists` or `maps`, else of the object itself. */
  readonly text?: string | undefined;
  /** Another field of items that is kept as text; no item has both. */
  readonly orText?: string | undefined;
  /** Fields of the object that hold lists whose items are read one by one. */
  readonly lists?: readonly string[] | undefined;
  /** The most items of such a list. One that is much too long is refused before the rest of it is scanned. */
  readonly mostItems?: number | undefined;
  /** Fields of the object that hold objects whose members are read one by one; no two may have the same name. */
  readonly maps?: readonly string[] | undefined;
  /** A field of the object itself that is kept as text beside those of items. */
  readonly topText?: string | undefined;
  /** Whether a field may be called `__proto__`. */
  readonly allowProto?: boolean | undefined;
  /** Whether no object, at any depth, may have a name twice: of such a name only the last value would be kept. */
  readonly uniqueNames?: boolean | undefined;
  /** Lifts the limits on the number of values: the reader is the process of whoever wrote the text. */
  readonly anySize?: boolean | undefined;
}

/** The bytes from `start` to before `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** How many numbers describe one item in `ListSpan.spans`. */
export const NUMBERS = 5;

/** Where a list and its items lie. `spans` holds start and end of each item and of its text (-1 without), and 1 if that is `orText`. */
export interface ListSpan extends Span {
  readonly name: string;
  readonly spans: readonly number[];
  /** Of a map, the names of the items. */
  readonly keys: readonly string[] | null;
}

/** Values that one call of JSON.parse may build, for one item of a list or for everything else: some 10 ms. */
export const MOST_VALUES_AT_ONCE = 20_000;
/** Values in a whole body, without those in fields that are kept as text. */
export const MOST_VALUES = 1_000_000;

/** The states of the scanner: what may come next. */
const VALUE = 0;
const FIRST_VALUE = 1;
const KEY = 2;
const FIRST_KEY = 3;
const COLON = 4;
const AFTER_VALUE = 5;
const REST_OF_TEXT = 6;
const REST_OF_KEY = 7;
const END = 8;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON_SIGN = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const SPACE = 0x20;
const UNDERSCORE = 0x5f;
const LOWER_U = 0x75;

const PROTO = '__proto__';
/** What may follow a backslash, besides `u`. */
const ESCAPES = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));
const LITERALS = new Map(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)] as const),
);
/** A number of at most so many characters and without an exponent is always represented exactly. */
const SURELY_EXACT_DIGITS = 15;
/** Longer numbers are refused. */
const MOST_DIGITS = 10_000;

/** The stack of open objects and arrays. Scanners that never run at the same time can share one. */
export class OpenValues {
  readonly isObject: Uint8Array;
  readonly positions: Int32Array;

  constructor(readonly maxDepth: number) {
    this.isObject = new Uint8Array(maxDepth + 1);
    this.positions = new Int32Array(maxDepth + 1);
  }
}

/** One scan of one text. */
export class JsonScanner {
  /** Where the field that is kept as text lies, when there are no lists. */
  text: Span | null = null;
  /** Where the field of the object itself lies that is kept as text beside those of items. */
  topText: Span | null = null;
  readonly lists: ListSpan[] = [];

  private at = 0;
  private next = VALUE;
  private depth = 0;
  /** Which of the open values are objects, by depth from 1 on. */
  private readonly isObject: Uint8Array;
  /** For each open object the byte of its current key, for each open array the index of its current value. */
  private readonly positions: Int32Array;
  /** By depth, the names of the open objects, if none may be given twice. */
  private readonly names: (Set<string> | undefined)[] = [];
  private readonly textDepth: number;
  /** The depth of the field that is being kept. */
  private keptDepth = -1;

  private values = 0;
  private valuesInItems = 0;
  private valuesBeforeItem = 0;
  private keyIsText = false;
  /** Whether that key is the other one of the two. */
  private keyIsOther = false;
  private textIsOther = false;
  private keeping = false;
  private textStart = -1;
  private textEnd = -1;
  private inList = false;
  private listStart = 0;
  private items: number[] = [];
  private keys: Set<string> | null = null;
  private itemStart = 0;
  private keyStart = 0;
  private keyHasEscapes = false;

  constructor(
    private readonly bytes: Buffer,
    private readonly shape: JsonShape,
    open = new OpenValues(shape.maxDepth),
  ) {
    this.isObject = open.isObject;
    this.positions = open.positions;
    const hasItems = shape.lists !== undefined || shape.maps !== undefined;
    this.textDepth = shape.text === undefined ? -1 : hasItems ? 3 : 1;
  }

  /** Scans about so many more bytes; true at the end of a valid text. Throws what is wrong with it. */
  advance(portion: number): boolean {
    const { bytes } = this;
    const { length } = bytes;
    const until = Math.min(length, this.at + portion);
    let { at, next } = this;
    while (at < until) {
      if (next === REST_OF_TEXT || next === REST_OF_KEY) {
        at = this.skipText(at, until);
        if (at >= until) break;
        at += 1;
        if (next === REST_OF_KEY) {
          this.endKey(at);
          next = COLON;
        } else next = this.endValue(at);
        continue;
      }
      const byte = bytes[at]!;
      if (byte <= SPACE && (byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09)) {
        at += 1;
        continue;
      }
      switch (next) {
        case AFTER_VALUE:
          if (byte === COMMA) {
            if (this.isObject[this.depth]) next = KEY;
            else {
              this.positions[this.depth]! += 1;
              next = VALUE;
            }
          } else if (byte === (this.isObject[this.depth] ? CLOSE_OBJECT : CLOSE_ARRAY)) {
            this.depth -= 1;
            next = this.endValue(at + 1);
          } else throw this.unexpected(at);
          at += 1;
          break;
        case FIRST_KEY:
        case KEY:
          if (byte === QUOTE) {
            this.keyStart = at;
            this.keyHasEscapes = false;
            this.positions[this.depth] = at;
            next = REST_OF_KEY;
          } else if (byte === CLOSE_OBJECT && next === FIRST_KEY) {
            this.depth -= 1;
            next = this.endValue(at + 1);
          } else throw this.unexpected(at);
          at += 1;
          break;
        case COLON:
          if (byte !== COLON_SIGN) throw this.unexpected(at);
          next = VALUE;
          at += 1;
          break;
        case FIRST_VALUE:
        case VALUE:
          if (byte === CLOSE_ARRAY && next === FIRST_VALUE) {
            this.depth -= 1;
            at += 1;
            next = this.endValue(at);
            break;
          }
          this.beginValue(at, byte);
          if (byte === QUOTE) {
            at += 1;
            next = REST_OF_TEXT;
          } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
            next = this.open(byte === OPEN_OBJECT);
            at += 1;
          } else {
            at =
              byte === MINUS || (byte >= ZERO && byte <= NINE) ? this.skipNumber(at) : this.skipLiteral(at);
            next = this.endValue(at);
          }
          break;
        default:
          throw this.unexpected(at);
      }
    }
    this.at = at;
    this.next = next;
    if (!this.shape.anySize && this.values > MOST_VALUES) throw tooManyValues('', MOST_VALUES);
    if (at < length) {
      this.mustNotBeTooLong();
      return false;
    }
    if (next !== END) throw new PunctualError('MALFORMED_JSON', 'The text ends too early.');
    if (!this.shape.anySize && this.values - this.valuesInItems > MOST_VALUES_AT_ONCE) {
      throw tooManyValues('', MOST_VALUES_AT_ONCE);
    }
    return true;
  }

  /** The spans of small items take ten times as much memory as their text, so a list that is too long is not scanned to its end. */
  private mustNotBeTooLong(): void {
    const { mostItems = Number.POSITIVE_INFINITY } = this.shape;
    if (!this.inList || this.items.length <= NUMBERS * mostItems) return;
    const pointer = pointerStep(this.keyAt(this.positions[1]!));
    throw invalid([{ pointer, detail: `must have at most ${mostItems} entries` }]);
  }

  private open(isObject: boolean): number {
    if (this.depth === this.shape.maxDepth) {
      throw invalid([
        { pointer: '', detail: `must not be nested deeper than ${this.shape.maxDepth} levels` },
      ]);
    }
    this.depth += 1;
    this.isObject[this.depth] = isObject ? 1 : 0;
    this.positions[this.depth] = 0;
    if (this.shape.uniqueNames) this.names[this.depth] = undefined;
    return isObject ? FIRST_KEY : FIRST_VALUE;
  }

  private beginValue(at: number, byte: number): void {
    if (this.keeping) return;
    this.values += 1;
    if (this.depth > 3) return;
    if (this.keyIsText) {
      this.keyIsText = false;
      const isTop = this.depth !== this.textDepth;
      if (isTop ? this.topText : this.textStart >= 0) throw this.secondText(isTop);
      if (!isTop) this.textIsOther = this.keyIsOther;
      this.keeping = true;
      this.keptDepth = this.depth;
      this.textStart = at;
    } else if (this.depth === 1 && byte === OPEN_ARRAY) this.beginList(at, this.shape.lists, false);
    else if (this.depth === 1 && byte === OPEN_OBJECT) this.beginList(at, this.shape.maps, true);
    else if (this.depth === 2 && this.inList) {
      this.addKey();
      this.itemStart = at;
      this.valuesBeforeItem = this.values - 1;
      this.textStart = -1;
      this.textEnd = -1;
    }
  }

  private beginList(at: number, names: readonly string[] | undefined, isMap: boolean): void {
    if (!names || !this.isObject[1] || !names.includes(this.keyAt(this.positions[1]!))) return;
    this.inList = true;
    this.listStart = at;
    this.items = [];
    this.keys = isMap ? new Set() : null;
  }

  /** Notes the name of an item of a map. */
  private addKey(): void {
    const { keys } = this;
    if (!keys) return;
    const key = this.keyAt(this.positions[2]!);
    if (keys.has(key)) throw this.wrong('is given twice');
    keys.add(key);
  }

  /** A value ends before this byte; `depth` is that of the value around it. */
  private endValue(at: number): number {
    const { depth } = this;
    if (depth > 3) return AFTER_VALUE;
    if (this.keeping) {
      if (depth !== this.keptDepth) return AFTER_VALUE;
      this.keeping = false;
      if (depth !== this.textDepth) {
        this.topText = { start: this.textStart, end: at };
        this.textStart = -1;
        return AFTER_VALUE;
      }
      this.textEnd = at;
      if (depth === 1) this.text = { start: this.textStart, end: at };
    } else if (this.inList && depth === 2) {
      const values = this.values - this.valuesBeforeItem;
      if (values > MOST_VALUES_AT_ONCE) throw tooManyValues(this.pointer(), MOST_VALUES_AT_ONCE);
      this.valuesInItems += values;
      this.items.push(this.itemStart, at, this.textStart, this.textEnd, this.textIsOther ? 1 : 0);
    } else if (this.inList && depth === 1) {
      this.inList = false;
      const name = this.keyAt(this.positions[1]!);
      if (this.lists.some((list) => list.name === name)) throw this.wrong('is given twice');
      const keys = this.keys && [...this.keys];
      this.lists.push({ name, start: this.listStart, end: at, spans: this.items, keys });
    }
    return depth === 0 ? END : AFTER_VALUE;
  }

  /** The index of the quote that ends a string, or `until` or beyond if it does not end before. */
  private skipText(from: number, until: number): number {
    const { bytes } = this;
    let at = from;
    while (at < until) {
      const byte = bytes[at]!;
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at = this.skipEscape(at);
      else if (byte < SPACE) throw this.unexpected(at);
      else at += 1;
    }
    return at;
  }

  private skipEscape(at: number): number {
    const { bytes } = this;
    const letter = bytes[at + 1];
    this.keyHasEscapes = true;
    if (letter === LOWER_U) {
      for (let i = at + 2; i < at + 6; i++) if (!isHex(bytes[i])) throw this.unexpected(i);
      return at + 6;
    }
    if (letter === undefined || !ESCAPES.has(letter)) throw this.unexpected(at + 1);
    return at + 2;
  }

  private endKey(at: number): void {
    const { bytes, keyStart, depth } = this;
    const mayBeProto = this.keyHasEscapes || (bytes[keyStart + 1] === UNDERSCORE && at - keyStart === 11);
    if (mayBeProto && !this.shape.allowProto && this.keyAt(keyStart) === PROTO) {
      throw this.wrong('is a name that is not allowed');
    }
    if (this.shape.uniqueNames) this.addName();
    if (this.keeping) return;
    const { topText } = this.shape;
    if (depth === 1 && topText !== undefined) this.keyIsText = this.isTextKey(keyStart, at, topText);
    if (depth !== this.textDepth) return;
    this.keyIsText = (depth === 1 || this.inList) && this.isTextKey(keyStart, at, this.shape.text!);
    const { orText } = this.shape;
    this.keyIsOther =
      orText !== undefined && !this.keyIsText && this.inList && this.isTextKey(keyStart, at, orText);
    if (this.keyIsOther) this.keyIsText = true;
  }

  private addName(): void {
    this.names[this.depth] ??= new Set();
    const names = this.names[this.depth]!;
    const name = this.keyAt(this.positions[this.depth]!);
    if (names.has(name)) throw this.wrong('is given twice');
    names.add(name);
  }

  private secondText(isTop: boolean): PunctualError {
    if (isTop || this.keyIsOther === this.textIsOther) return this.wrong('is given twice');
    const { text, orText } = this.shape;
    return this.wrong(`does not go together with "${this.textIsOther ? orText : text}"`);
  }

  private isTextKey(start: number, end: number, text: string): boolean {
    if (this.keyHasEscapes) return this.keyAt(start) === text;
    if (end - start - 2 !== text.length) return false;
    for (let i = 0; i < text.length; i++) if (this.bytes[start + 1 + i] !== text.charCodeAt(i)) return false;
    return true;
  }

  private skipNumber(from: number): number {
    const { bytes } = this;
    let at = bytes[from] === MINUS ? from + 1 : from;
    at = bytes[at] === ZERO ? at + 1 : this.skipDigits(at);
    let isPlain = true;
    if (bytes[at] === POINT) at = this.skipDigits(at + 1);
    if ((bytes[at]! | 0x20) === 0x65) {
      isPlain = false;
      at += 1;
      at = this.skipDigits(bytes[at] === MINUS || bytes[at] === PLUS ? at + 1 : at);
    }
    const mayBeAnother = !this.keeping && (!isPlain || at - from > SURELY_EXACT_DIGITS);
    if (mayBeAnother && !isHeld(bytes.toString('latin1', from, at))) {
      throw this.wrong('is a number that would be stored as another one; send it as text');
    }
    return at;
  }

  private skipDigits(from: number): number {
    const { bytes } = this;
    const end = from + MOST_DIGITS;
    let at = from;
    for (let byte = bytes[at]!; byte >= ZERO && byte <= NINE && at < end; byte = bytes[at]!) at += 1;
    if (at === from) throw this.unexpected(at);
    if (at === end) throw this.wrong('is a number of too many digits');
    return at;
  }

  private skipLiteral(at: number): number {
    const word = LITERALS.get(this.bytes[at]!);
    if (!word) throw this.unexpected(at);
    for (let i = 0; i < word.length; i++) if (this.bytes[at + i] !== word[i]) throw this.unexpected(at + i);
    return at + word.length;
  }

  /** The key that begins at this byte. */
  private keyAt(start: number): string {
    let end = start + 1;
    for (; this.bytes[end] !== QUOTE; end++) if (this.bytes[end] === BACKSLASH) end += 1;
    return JSON.parse(this.bytes.toString('utf8', start, end + 1)) as string;
  }

  /** The JSON pointer to the value or key that is being scanned. */
  private pointer(): string {
    let pointer = '';
    for (let level = 1; level <= this.depth; level++) {
      const position = this.positions[level]!;
      pointer += pointerStep(this.isObject[level] ? this.keyAt(position) : position);
    }
    return pointer;
  }

  private wrong(detail: string): PunctualError {
    return invalid([{ pointer: this.pointer(), detail }]);
  }

  private unexpected(at: number): PunctualError {
    const byte = this.bytes[at];
    if (byte === undefined) return new PunctualError('MALFORMED_JSON', 'The text ends too early.');
    const shown = byte > SPACE && byte < 0x7f ? `"${String.fromCharCode(byte)}"` : `0x${byte.toString(16)}`;
    return new PunctualError('MALFORMED_JSON', `Unexpected ${shown} at byte ${at}.`);
  }
}

function tooManyValues(pointer: string, most: number): PunctualError {
  return invalid([{ pointer, detail: `must not hold more than ${most} values` }]);
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const letter = byte | 0x20;
  return (byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66);
}

/**
 * Whether a number survives being parsed and written again. Fractions may be rounded, since they are approximations
 * anyway. Whole numbers may not, and no number may become zero or infinite.
 */
function isHeld(text: string): boolean {
  const value = Number(text);
  if (!Number.isFinite(value)) return false;
  if (value === 0) return !/[1-9]/.test(text.split(/e/i)[0]!);
  return !/^-?\d+$/.test(text) || String(value) === text || BigInt(text) === BigInt(value);
}
