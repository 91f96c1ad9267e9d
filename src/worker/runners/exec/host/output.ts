/** What a stream of a program leaves behind: its first bytes, its last ones, and its lines. Whatever comes, memory is bounded. */

/** The longest part of a line that is passed on as one. */
const LONGEST_LINE = 8 * 1024;
const [NEW_LINE, CARRIAGE_RETURN] = [0x0a, 0x0d];
/** The bytes of the longest character. */
const LONGEST_CHARACTER = 4;

/** The bytes that both streams of a program may still pass on as lines. */
export interface LineBudget {
  bytes: number;
  isCut: boolean;
}

interface StreamOptions {
  /** The most bytes that are kept from the beginning. */
  readonly headBytes: number;
  /** The most bytes that are kept from the end. */
  readonly tailBytes: number;
  readonly budget: LineBudget;
  /** `continues` holds the indices of those that are no whole lines: what comes next belongs to them. */
  readonly onLines: (lines: readonly string[], continues: readonly number[]) => void;
}

/** A line, or a part of one that is too long to be passed on as one. */
interface Part {
  readonly text: string;
  readonly continues: boolean;
}

/**
 * Bytes that come in pieces. They are copied together: a program may print byte by byte, and a million pieces take two hundred
 * times the memory of what is in them, which is more than the host has.
 */
class GrowingBytes {
  #buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What has come; valid until more does. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(length, 2 * this.#buffer.length));
      this.bytes.copy(larger);
      this.#buffer = larger;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  clear(): void {
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }
}

/** One stream of a program. */
export class OutputStream {
  readonly #options: StreamOptions;
  readonly #head = new GrowingBytes();
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;
  /** The part of a line whose end has not come. */
  readonly #rest = new GrowingBytes();

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  /** How many bytes have come. */
  get bytes(): number {
    return this.#bytes;
  }

  /** All of it as text; null if it is more than is kept, or no UTF-8. */
  get text(): string | null {
    if (this.#bytes > this.#options.headBytes) return null;
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(this.#head.bytes);
    } catch {
      return null;
    }
  }

  /** Whether more has come than its last bytes. */
  get isTailCut(): boolean {
    return this.#bytes > this.#options.tailBytes;
  }

  /** Its last bytes as text; what is no UTF-8 becomes U+FFFD. */
  get tail(): string {
    const { tailBytes } = this.#options;
    const kept = Buffer.concat(this.#tail);
    const text = kept.subarray(Math.max(0, kept.length - tailBytes)).toString('utf8');
    // The first character may have lost its beginning.
    return this.isTailCut ? text.replace(/^\uFFFD{1,3}/, '') : text;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    this.#keepHead(piece);
    this.#keepTail(piece);
    this.#addLines(piece);
  }

  /** Passes on the last line, if it has no end. */
  end(): void {
    if (this.#rest.length > 0) this.#pass(this.#takeRest(false));
  }

  #keepHead(piece: Buffer): void {
    const { headBytes } = this.#options;
    // Once there is more than fits, none of it is wanted.
    if (this.#bytes > headBytes) this.#head.clear();
    else this.#head.add(piece);
  }

  #keepTail(piece: Buffer): void {
    const { tailBytes } = this.#options;
    const kept = piece.length > tailBytes ? piece.subarray(piece.length - tailBytes) : piece;
    // A copy: a part of a large piece would keep all of it.
    this.#tail.push(Buffer.from(kept));
    this.#tailBytes += kept.length;
    if (this.#tailBytes < 4 * tailBytes && this.#tail.length < 256) return;
    const all = Buffer.concat(this.#tail);
    this.#tail = [Buffer.from(all.subarray(Math.max(0, all.length - tailBytes)))];
    this.#tailBytes = this.#tail[0]!.length;
  }

  #addLines(piece: Buffer): void {
    if (this.#options.budget.bytes <= 0) {
      this.#options.budget.isCut = true;
      return;
    }
    const lines: Part[] = [];
    let from = 0;
    for (let at = piece.indexOf(NEW_LINE); at >= 0; at = piece.indexOf(NEW_LINE, from)) {
      this.#rest.add(piece.subarray(from, at));
      for (const line of this.#takeRest(false)) lines.push(line);
      from = at + 1;
    }
    this.#rest.add(piece.subarray(from));
    if (this.#rest.length >= LONGEST_LINE) for (const line of this.#takeRest(true)) lines.push(line);
    if (lines.length > 0) this.#pass(lines);
  }

  /**
   * The line that has come so far; one that is longer than a line may be becomes several. Of one that goes on, what belongs to its next
   * bytes stays: a part of a character, and the beginning of a line end.
   */
  #takeRest(continues: boolean): Part[] {
    const bytes = this.#rest.bytes;
    const end = continues ? wholeLength(bytes) : bytes.length;
    const read = bytes.toString('utf8', 0, end);
    const text = continues ? read : read.replace(/\r$/, '');
    this.#rest.clear();
    this.#rest.add(bytes.subarray(end));
    const parts = Math.max(1, Math.ceil(text.length / LONGEST_LINE));
    return Array.from({ length: parts }, (_, i) => ({
      text: text.slice(i * LONGEST_LINE, (i + 1) * LONGEST_LINE),
      continues: continues || i < parts - 1,
    }));
  }

  #pass(parts: readonly Part[]): void {
    const { budget, onLines } = this.#options;
    const passed: string[] = [];
    const open: number[] = [];
    for (const { text, continues } of parts) {
      if (budget.bytes <= 0) {
        budget.isCut = true;
        break;
      }
      // An empty line costs, too: there may be millions of them.
      budget.bytes -= text.length + 16;
      if (continues) open.push(passed.length);
      passed.push(text);
    }
    if (passed.length > 0) onLines(passed, open);
  }
}

/** How many of the bytes are there without what the next ones may complete. */
function wholeLength(bytes: Buffer): number {
  const last = bytes.length - 1;
  if (bytes[last] === CARRIAGE_RETURN) return last;
  for (let at = last; at >= 0 && at > last - LONGEST_CHARACTER; at--) {
    const byte = bytes[at]!;
    // Within a character, the bytes behind the first one begin with the bits 10.
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return at + length > bytes.length ? at : bytes.length;
  }
  return bytes.length;
}
