import { MESSAGE_AT, MESSAGE_BYTES } from './launcher-program.js';

/** Calls to the kernel as the launcher takes them: a message that is right at the address to which it is received. */

/** The processors whose calls are known here. */
export type Architecture = 'x64' | 'arm64';

/** Numbers of the calls: of x64 and of arm64. */
// biome-ignore format: a table is read by the line
const NUMBERS = {
  chdir: [80, 49], clone: [56, 220], close: [3, 57], dup3: [292, 24], execve: [59, 221], exit_group: [231, 94],
  fchown: [93, 55], fchownat: [260, 54], lseek: [8, 62], mkdirat: [258, 34], openat: [257, 56], pipe2: [293, 59],
  prctl: [157, 167], prlimit64: [302, 261], setgroups: [116, 159], setresgid: [119, 149], setresuid: [117, 147],
  setsid: [112, 157], unlinkat: [263, 35], wait4: [61, 260], write: [1, 64],
} as const;

export type CallName = keyof typeof NUMBERS;

/** A message begins with its size and with the address of the first call. */
const HEADER_BYTES = 16;
/** Number, four arguments, where the result is kept, and how far the next call is after a negative, a zero, a positive result. */
const CALL_BYTES = 9 * 8;

/** A place in a list to which a result may lead. */
export class Place {
  /** The index of the call that is made there, once it is known. */
  index = 0;
}

/** What of a call differs from "whatever the result, go on with the next". */
interface CallOptions {
  /** The address at which the result is kept. */
  readonly keepAt?: number;
  /** Where to go on after an error. */
  readonly ifNegative?: Place;
  /** Where to go on after zero. */
  readonly ifZero?: Place;
}

interface Call extends CallOptions {
  /** Null for the end of the list. */
  readonly name: CallName | null;
  readonly args: readonly number[];
}

/** A message to the launcher that is being put together. */
export class CallList {
  readonly #architecture: Architecture;
  readonly #calls: Call[] = [];
  readonly #data: Buffer[] = [];
  #end = MESSAGE_AT + HEADER_BYTES;
  /** For results that nobody asks for. */
  readonly #unused: number;

  constructor(architecture: Architecture) {
    this.#architecture = architecture;
    this.#unused = this.room(1);
  }

  /** Adds bytes; answers with their address. */
  bytes(bytes: Buffer): number {
    const at = this.#end;
    this.#data.push(bytes);
    this.#end += bytes.length;
    return at;
  }

  /** Adds room for so many numbers of eight bytes; answers with its address. */
  room(count: number): number {
    return this.bytes(Buffer.alloc(8 * count));
  }

  /** Adds numbers of eight bytes; answers with their address. */
  numbers(numbers: readonly number[]): number {
    const bytes = Buffer.alloc(8 * numbers.length);
    for (const [index, number] of numbers.entries()) writeNumber(bytes, number, 8 * index);
    return this.bytes(bytes);
  }

  /** Adds a text; answers with its address. */
  text(text: string): number {
    // Nothing may be cut off that was checked before.
    if (text.includes('\0')) throw new Error('a text for the kernel holds NUL');
    return this.bytes(Buffer.from(`${text}\0`));
  }

  /** Adds texts; answers with the address of a list of their addresses, which ends with zero. */
  texts(texts: readonly string[]): number {
    return this.numbers([...texts.map((text) => this.text(text)), 0]);
  }

  /** Adds a call behind the others. */
  call(name: CallName, args: readonly number[], options: CallOptions = {}): void {
    this.#calls.push({ name, args, ...options });
  }

  /** Adds the end: the launcher waits for its next message. */
  end(): void {
    this.#calls.push({ name: null, args: [] });
  }

  /** What is added next is at this place. */
  reach(place: Place): void {
    place.index = this.#calls.length;
  }

  /** The finished message; throws if it is larger than the launcher takes. */
  message(): Buffer {
    const calls = Buffer.alloc(CALL_BYTES * this.#calls.length);
    for (const [index, call] of this.#calls.entries()) this.#writeCall(calls, call, index);
    const header = Buffer.alloc(HEADER_BYTES);
    const bytes = Buffer.concat([header, ...this.#data, calls]);
    if (bytes.length > MESSAGE_BYTES) throw new Error('arguments and environment are too long');
    writeNumber(bytes, bytes.length - HEADER_BYTES, 0);
    writeNumber(bytes, this.#end, 8);
    return bytes;
  }

  #writeCall(calls: Buffer, { name, args, keepAt, ifNegative, ifZero }: Call, index: number): void {
    const at = CALL_BYTES * index;
    if (name === null) {
      calls.writeBigInt64LE(-1n, at);
      return;
    }
    const distance = (place: Place | undefined) => CALL_BYTES * ((place?.index ?? index + 1) - index);
    const number = NUMBERS[name][this.#architecture === 'x64' ? 0 : 1];
    const [a = 0, b = 0, c = 0, d = 0] = args;
    const fields = [
      number,
      a,
      b,
      c,
      d,
      keepAt ?? this.#unused,
      distance(ifNegative),
      distance(ifZero),
      CALL_BYTES,
    ];
    for (const [field, value] of fields.entries()) writeNumber(calls, value, at + 8 * field);
  }
}

function writeNumber(bytes: Buffer, number: number, at: number): void {
  // What is above 32 bits is cut off by `|`; the upper half is rounded down, also that of a negative number.
  bytes.writeInt32LE(number | 0, at);
  bytes.writeInt32LE(Math.floor(number / 2 ** 32) | 0, at + 4);
}
