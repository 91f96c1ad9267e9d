import { isAscii, isUtf8 } from 'node:buffer';
import { PunctualError } from './errors.js';
import { Turn } from './in-portions.js';
import { JsonScanner, type JsonShape, type ListSpan, OpenValues } from './json-scanner.js';
import { JsonText } from './json-text.js';

/**
 * Reads JSON that others wrote: nothing is built before the whole text has been found to be JSON within the limits, and
 * what is to be kept as text becomes a `JsonText`.
 */

/** Bytes that are walked over between two looks at the clock: about a millisecond. */
const PORTION_BYTES = 256 * 1024;
const VERY_LARGE_BYTES = 1024 * 1024;

let shared = new OpenValues(64);

/** The value of a small text. */
export function readJsonText(bytes: Buffer, shape: JsonShape): unknown {
  if (shared.maxDepth < shape.maxDepth) shared = new OpenValues(shape.maxDepth);
  const scanner = new JsonScanner(bytes, shape, shared);
  scanner.advance(bytes.length);
  const source = new Source(bytes);
  const lists = scanner.lists.map((list) => {
    const items = new Items(source, shape, list);
    while (!items.readSome(bytes.length));
    return items.read;
  });
  return readRest(source, shape, scanner, lists);
}

/** The value of a text of any size, read in portions. */
export async function readLargeJsonText(bytes: Buffer, shape: JsonShape): Promise<unknown> {
  const scanner = new JsonScanner(bytes, shape);
  const turn = new Turn();
  // Whoever has put so many bytes together has worked enough for this turn.
  if (bytes.length > VERY_LARGE_BYTES) await turn.next();
  while (!scanner.advance(PORTION_BYTES)) if (turn.isOver) await turn.next();
  const source = new Source(bytes);
  if (turn.isOver) await turn.next();
  const lists: unknown[][] = [];
  for (const list of scanner.lists) {
    const items = new Items(source, shape, list);
    while (!items.readSome(BYTES_AT_ONCE)) if (turn.isOver) await turn.next();
    lists.push(items.read);
  }
  if (turn.isOver) await turn.next();
  return readRest(source, shape, scanner, lists);
}

/** Parts of the text, by their bytes. */
class Source {
  private readonly text: string | null;

  constructor(private readonly bytes: Buffer) {
    // Where every character is one byte, parts are cut from the text, at a fraction of what it costs to decode each.
    this.text = isAscii(bytes) ? bytes.toString('latin1') : null;
    if (this.text === null && !isUtf8(bytes)) {
      throw new PunctualError('MALFORMED_JSON', 'The text is not UTF-8.');
    }
  }

  get length(): number {
    return this.bytes.length;
  }

  part(start: number, end: number): string {
    return this.text === null ? this.bytes.toString('utf8', start, end) : this.text.slice(start, end);
  }

  around(start: number, from: number, to: number, end: number): string {
    return `${this.part(start, from)}null${this.part(to, end)}`;
  }

  /** A copy, because a part that is cut from a large text keeps all of it in memory. */
  textOf(start: number, end: number): JsonText {
    const isOwn = this.text !== null && this.length <= SMALL_BYTES;
    const text = isOwn
      ? this.text.slice(start, end)
      : this.bytes.toString(this.text === null ? 'utf8' : 'latin1', start, end);
    return new JsonText(text, end - start);
  }

  isSame(a: number, b: number, length: number): boolean {
    const { bytes } = this;
    for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
    return true;
  }
}

const SMALL_BYTES = 1_024;
/** Bytes of items that are parsed between two looks at the clock; of one item, as many as it has. */
const BYTES_AT_ONCE = 4 * 1024;
const ITEMS_AT_ONCE = 64;
/** Numbers in the spans of an item. */
const NUMBERS = 4;

/** The items of a list, which are parsed many at a time, without the texts in them. */
class Items {
  readonly read: unknown[] = [];
  private place = 0;
  /** What surrounds the text of the item before, if it had one. Mostly the next has the same, and it is not parsed again. */
  private last: object | null = null;

  constructor(
    private readonly source: Source,
    private readonly shape: JsonShape,
    private readonly list: ListSpan,
  ) {}

  /** Reads some more, up to so many bytes and some; true when all are read. */
  readSome(bytes: number): boolean {
    const { source, list, read } = this;
    const { spans } = list;
    const from = this.place;
    const isLike: boolean[] = [];
    const texts: string[] = [];
    let left = bytes;
    let runStart = -1;
    let end = from;
    for (; end < spans.length && left > 0 && isLike.length < ITEMS_AT_ONCE; end += NUMBERS) {
      const [start, to] = [spans[end]!, spans[end + 1]!];
      const [textStart, textEnd] = [spans[end + 2]!, spans[end + 3]!];
      const like = textStart >= 0 && end > 0 && this.isLikeBefore(end);
      isLike.push(like);
      if (like) continue;
      // Items without a text are parsed as they stand, with the commas between them.
      const isRun = textStart < 0 && runStart >= 0;
      if (isRun) texts[texts.length - 1] = source.part(runStart, to);
      else texts.push(textStart < 0 ? source.part(start, to) : source.around(start, textStart, textEnd, to));
      if (!isRun) runStart = textStart < 0 ? start : -1;
      left -= to - start - (textEnd - textStart);
    }
    const parsed = texts.length === 0 ? [] : (JSON.parse(`[${texts.join(',')}]`) as unknown[]);
    let next = 0;
    for (let i = from, n = 0; i < end; i += NUMBERS, n++) {
      const textStart = spans[i + 2]!;
      const item = (isLike[n] ? { ...this.last } : parsed[next++]) as Record<string, unknown>;
      if (textStart >= 0) {
        item[this.shape.text!] = source.textOf(textStart, spans[i + 3]!);
        this.last = item;
      }
      read.push(item);
    }
    this.place = end;
    return end === spans.length;
  }

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

/** All but the items of the lists, which are put in afterwards. */
function readRest(
  source: Source,
  shape: JsonShape,
  scanner: JsonScanner,
  lists: readonly unknown[][],
): unknown {
  const { text } = scanner;
  if (text) {
    const rest = JSON.parse(source.around(0, text.start, text.end, source.length)) as Record<string, unknown>;
    rest[shape.text!] = source.textOf(text.start, text.end);
    return rest;
  }
  if (lists.length === 0) return JSON.parse(source.part(0, source.length));
  let around = '';
  let from = 0;
  for (const { start, end } of scanner.lists) {
    around += `${source.part(from, start)}null`;
    from = end;
  }
  const rest = JSON.parse(around + source.part(from, source.length)) as Record<string, unknown>;
  for (const [i, { name }] of scanner.lists.entries()) rest[name] = lists[i];
  return rest;
}
