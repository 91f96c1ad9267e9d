import { isAscii, isUtf8 } from 'node:buffer';
import { PunctualError } from './errors.js';
import { JsonScanner, type JsonShape, type ListSpan, NUMBERS, OpenValues } from './json-scanner.js';
import { TimeSlice } from './time-slice.js';

/**
 * Reads JSON from outside. No value is built before the scanner has found the whole text to be JSON within the limits.
 * The fields that are to be kept as text become a `JsonText`.
 */

/**
 * A JSON value as the text in which it came. It was checked when it was read, and it is never parsed: no digit of a
 * number is lost, and a short text that stands for a million values costs no more than its bytes.
 */
export class JsonText {
  constructor(
    readonly text: string,
    /** The length of the text in UTF-8. */
    readonly bytes: number,
  ) {}
}

/** Bytes that are scanned between two looks at the clock: about a millisecond. */
const PORTION_BYTES = 256 * 1024;
const VERY_LARGE_BYTES = 1024 * 1024;

/** Reading a small text is synchronous, so one buffer serves all of them. */
let shared = new OpenValues(64);

/** Reads a small text at once. */
export function readJsonText(bytes: Buffer, shape: JsonShape): unknown {
  if (shared.maxDepth < shape.maxDepth) shared = new OpenValues(shape.maxDepth);
  const scanner = new JsonScanner(bytes, shape, shared);
  scanner.advance(bytes.length);
  const source = new Source(bytes);
  const lists = scanner.lists.map((list) => {
    const items = new Items(source, shape, list);
    while (!items.readSome(bytes.length));
    return items.whole();
  });
  return readRest(source, shape, scanner, lists);
}

/** Reads a text of any size in slices, so that it does not block the event loop. */
export async function readLargeJsonText(bytes: Buffer, shape: JsonShape): Promise<unknown> {
  const scanner = new JsonScanner(bytes, shape);
  const slice = new TimeSlice();
  // Putting so many bytes together has already used up this slice.
  if (bytes.length > VERY_LARGE_BYTES) await slice.next();
  while (!scanner.advance(PORTION_BYTES)) if (slice.isOver) await slice.next();
  const source = new Source(bytes);
  if (slice.isOver) await slice.next();
  const lists: unknown[] = [];
  for (const list of scanner.lists) {
    const items = new Items(source, shape, list);
    while (!items.readSome(BYTES_AT_ONCE)) if (slice.isOver) await slice.next();
    lists.push(items.whole());
  }
  if (slice.isOver) await slice.next();
  return readRest(source, shape, scanner, lists);
}

/** The text, from which parts are cut by their byte offsets. */
class Source {
  private readonly encoding: 'latin1' | 'utf8';
  private readonly text: string | null;

  constructor(private readonly bytes: Buffer) {
    this.encoding = isAscii(bytes) ? 'latin1' : 'utf8';
    if (this.encoding === 'utf8' && !isUtf8(bytes)) {
      throw new PunctualError('MALFORMED_JSON', 'The text is not UTF-8.');
    }
    // In ASCII, byte offsets are character offsets: cutting a part costs a fraction of decoding it. A very large body is
    // not decoded as a whole, because it would be in memory twice.
    const isDecoded = this.encoding === 'latin1' && bytes.length <= VERY_LARGE_BYTES;
    this.text = isDecoded ? bytes.toString('latin1') : null;
  }

  get length(): number {
    return this.bytes.length;
  }

  part(start: number, end: number): string {
    return this.text === null ? this.bytes.toString(this.encoding, start, end) : this.text.slice(start, end);
  }

  /** The text from `start` to `end`, with `null` in place of what lies between `from` and `to`. */
  around(start: number, from: number, to: number, end: number): string {
    return `${this.part(start, from)}null${this.part(to, end)}`;
  }

  /** Copies the part out of a large text, because a slice would keep the whole text in memory. */
  textOf(start: number, end: number): JsonText {
    const isOwn = this.text !== null && this.length <= SMALL_BYTES;
    const text = isOwn ? this.text.slice(start, end) : this.bytes.toString(this.encoding, start, end);
    return new JsonText(text, end - start);
  }

  isSame(a: number, b: number, length: number): boolean {
    const { bytes } = this;
    for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
    return true;
  }
}

const SMALL_BYTES = 1_024;
/** Bytes of items that are parsed between two looks at the clock; a larger item is parsed at once. */
const BYTES_AT_ONCE = 4 * 1024;
const ITEMS_AT_ONCE = 64;

/** Parses the items of a list or map, many in one call of JSON.parse, without the texts in them. */
class Items {
  private readonly read: unknown[] = [];
  private position = 0;
  /** The last item that had a text. Mostly the next one differs in its text alone, and is copied instead of parsed. */
  private last: object | null = null;

  constructor(
    private readonly source: Source,
    private readonly shape: JsonShape,
    private readonly list: ListSpan,
  ) {}

  /** Reads the next items, of about so many bytes; true when all are read. */
  readSome(bytes: number): boolean {
    const { source, list, read } = this;
    const { spans } = list;
    const from = this.position;
    const isLike: boolean[] = [];
    const texts: string[] = [];
    let left = bytes;
    let runStart = -1;
    let runEnd = -1;
    let end = from;
    for (; end < spans.length && left > 0 && isLike.length < ITEMS_AT_ONCE; end += NUMBERS) {
      const [start, to] = [spans[end]!, spans[end + 1]!];
      const [textStart, textEnd] = [spans[end + 2]!, spans[end + 3]!];
      const like = textStart >= 0 && end > 0 && this.isLikeBefore(end);
      isLike.push(like);
      if (like) continue;
      left -= to - start - (textEnd - textStart);
      // Consecutive items without a text are cut out together, with the commas between them; in a map, keys are there too.
      if (textStart < 0 && list.keys === null) {
        if (runStart < 0) runStart = start;
        runEnd = to;
        continue;
      }
      if (runStart >= 0) texts.push(source.part(runStart, runEnd));
      runStart = -1;
      texts.push(textStart < 0 ? source.part(start, to) : source.around(start, textStart, textEnd, to));
    }
    if (runStart >= 0) texts.push(source.part(runStart, runEnd));
    const parsed = texts.length === 0 ? [] : (JSON.parse(`[${texts.join(',')}]`) as unknown[]);
    let next = 0;
    for (let i = from, n = 0; i < end; i += NUMBERS, n++) {
      const textStart = spans[i + 2]!;
      const item = (isLike[n] ? { ...this.last } : parsed[next++]) as Record<string, unknown>;
      if (textStart >= 0) {
        item[(spans[i + 4] === 1 ? this.shape.orText : this.shape.text)!] = source.textOf(
          textStart,
          spans[i + 3]!,
        );
        this.last = item;
      }
      read.push(item);
    }
    this.position = end;
    return end === spans.length;
  }

  /** What was read, as the list or map that it is. */
  whole(): unknown {
    const { keys } = this.list;
    return keys ? Object.fromEntries(keys.map((key, i) => [key, this.read[i]])) : this.read;
  }

  /** Whether an item equals the one before it in everything but its text. */
  private isLikeBefore(i: number): boolean {
    const { source } = this;
    const { spans } = this.list;
    const before = i - NUMBERS;
    const [a, b] = [spans[before]!, spans[i]!];
    const head = spans[i + 2]! - b;
    const tail = spans[i + 1]! - spans[i + 3]!;
    return (
      spans[before + 2]! - a === head &&
      spans[before + 1]! - spans[before + 3]! === tail &&
      source.isSame(a, b, head) &&
      source.isSame(spans[before + 3]!, spans[i + 3]!, tail)
    );
  }
}

/** Parses everything but the items of the lists, and puts these in. */
function readRest(
  source: Source,
  shape: JsonShape,
  scanner: JsonScanner,
  lists: readonly unknown[],
): unknown {
  const { text } = scanner;
  if (text) {
    const rest = JSON.parse(source.around(0, text.start, text.end, source.length)) as Record<string, unknown>;
    rest[shape.text!] = source.textOf(text.start, text.end);
    return rest;
  }
  const { topText } = scanner;
  if (lists.length === 0 && !topText) return JSON.parse(source.part(0, source.length));
  let around = '';
  let from = 0;
  const cut = [...scanner.lists, ...(topText ? [topText] : [])].sort((a, b) => a.start - b.start);
  for (const { start, end } of cut) {
    around += `${source.part(from, start)}null`;
    from = end;
  }
  const rest = JSON.parse(around + source.part(from, source.length)) as Record<string, unknown>;
  for (const [i, { name }] of scanner.lists.entries()) rest[name] = lists[i];
  if (topText) rest[shape.topText!] = source.textOf(topText.start, topText.end);
  return rest;
}
