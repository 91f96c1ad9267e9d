/**
 * Which files are static programs of Linux. The check is strict, because spawn and every tool around it hand a file that
 * the kernel refuses to `/bin/sh`, which would then run the bytes of the file as commands.
 */

/** The check looks at no more of a file than these first bytes. */
export const ELF_HEAD_BYTES = 65_536;

/** The kinds of processors, in the words of Node, by their number in the header. */
const MACHINES: ReadonlyMap<number, string> = new Map([
  [62, 'x64'],
  [183, 'arm64'],
  [243, 'riscv64'],
  [258, 'loong64'],
  [21, 'ppc64'],
]);

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const MOST_PROGRAM_HEADERS = 128;
const PT_LOAD = 1;
const PT_INTERP = 3;
const PT_GNU_PROPERTY = 0x6474e553;
/** The longest note of properties that the kernel reads; with a longer one it refuses the file. */
const MOST_PROPERTY_BYTES = 1_024;
const IS_EXECUTABLE = 1;

/** What to do about a file that is not all there. */
const WHOLE = 'copy or build it again';

/** A program that may be run, with the processor it is made for, or why the file is none. */
export type ElfVerdict =
  | { readonly isProgram: true; readonly machine: string }
  | { readonly isProgram: false; readonly why: string };

/** What a file is. `head` holds its first `ELF_HEAD_BYTES`, or all of a shorter one; `fileBytes` is its whole size. */
export function readElf(head: Uint8Array, fileBytes: number): ElfVerdict {
  const why = fileProblem(head) ?? headerProblem(viewOf(head)) ?? programProblem(viewOf(head), fileBytes);
  if (why !== null) return { isProgram: false, why };
  return { isProgram: true, machine: MACHINES.get(viewOf(head).getUint16(18, true))! };
}

/** Why a file cannot be run on a machine of this kind; null if it can. */
export function elfProblem(head: Uint8Array, fileBytes: number, machine: string): string | null {
  const verdict = readElf(head, fileBytes);
  if (!verdict.isProgram) return verdict.why;
  if (verdict.machine === machine) return null;
  return `it is made for ${verdict.machine} and this machine is ${machine}; build it for ${machine}`;
}

function fileProblem(head: Uint8Array): string | null {
  if (head.length === 0) return 'it is empty';
  if (head[0] === 0x23 && head[1] === 0x21) return 'it is a script (#!), not a binary';
  const isElf = head[0] === 0x7f && head[1] === 0x45 && head[2] === 0x4c && head[3] === 0x46;
  if (!isElf) return 'it is no ELF file, the format of binaries on Linux';
  if (head.length < HEADER_BYTES) return `its ELF header is cut off; ${WHOLE}`;
  return null;
}

function headerProblem(view: DataView): string | null {
  if (view.getUint8(4) !== 2) return 'it is not a 64-bit binary';
  if (view.getUint8(5) !== 1) return 'it is not a little-endian binary';
  const type = view.getUint16(16, true);
  if (type === 1) return 'it is an object file; link it to a program';
  if (type !== 2 && type !== 3) return `it is no program (ELF type ${type})`;
  const machine = view.getUint16(18, true);
  if (!MACHINES.has(machine))
    return `it is made for a processor that is not supported (ELF machine ${machine})`;
  if (view.getUint16(54, true) !== PROGRAM_HEADER_BYTES) return 'its program headers have the wrong size';
  const count = view.getUint16(56, true);
  if (count < 1 || count > MOST_PROGRAM_HEADERS)
    return `it has ${count} program headers; between 1 and ${MOST_PROGRAM_HEADERS} are accepted`;
  return null;
}

function programProblem(view: DataView, fileBytes: number): string | null {
  const entry = view.getBigUint64(24, true);
  const start = view.getBigUint64(32, true);
  const count = view.getUint16(56, true);
  const end = start + BigInt(count * PROGRAM_HEADER_BYTES);
  if (end > BigInt(fileBytes)) return `it is cut off: its program headers lie beyond its end; ${WHOLE}`;
  if (start < BigInt(HEADER_BYTES) || end > BigInt(view.byteLength))
    return `its program headers are not within its first ${ELF_HEAD_BYTES} bytes`;
  let isEntryExecutable = false;
  for (let index = 0; index < count; index++) {
    const segment = readSegment(view, Number(start) + index * PROGRAM_HEADER_BYTES);
    if (segment.type === PT_INTERP)
      return 'it is linked dynamically; link it statically (cc -static, CGO_ENABLED=0, a musl target of Rust)';
    if (segment.type === PT_GNU_PROPERTY && !isPropertyNote(view, segment))
      return 'its note of properties is damaged';
    if (segment.type !== PT_LOAD) continue;
    if (segment.offset + segment.fileSize > BigInt(fileBytes))
      return `it is cut off: a segment lies beyond its end; ${WHOLE}`;
    if (segment.fileSize > segment.memorySize) return 'a segment is larger in the file than in memory';
    const holdsEntry = entry >= segment.address && entry - segment.address < segment.fileSize;
    if (holdsEntry && (segment.flags & IS_EXECUTABLE) !== 0) isEntryExecutable = true;
  }
  return isEntryExecutable ? null : 'its entry point lies in no executable segment';
}

/** Whether the kernel accepts the note: it looks at it before anything else of the program. */
function isPropertyNote(view: DataView, { offset, fileSize }: Segment): boolean {
  if (fileSize < 16n || fileSize > MOST_PROPERTY_BYTES || offset + fileSize > BigInt(view.byteLength))
    return false;
  const at = Number(offset);
  const end = at + Number(fileSize);
  const isGnu = view.getUint32(at, true) === 4 && view.getUint32(at + 12, true) === 0x00554e47;
  const isOfProperties = view.getUint32(at + 8, true) === 5;
  const last = at + 16 + view.getUint32(at + 4, true);
  if (!isGnu || !isOfProperties || last > end) return false;
  let next = at + 16;
  // Each property of a 64-bit binary is a type, a size and four bytes, padded to eight.
  while (next + 8 <= last) {
    if (view.getUint32(next + 4, true) !== 4) return false;
    next += 16;
  }
  return next === last;
}

interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly offset: bigint;
  readonly address: bigint;
  readonly fileSize: bigint;
  readonly memorySize: bigint;
}

function readSegment(view: DataView, at: number): Segment {
  return {
    type: view.getUint32(at, true),
    flags: view.getUint32(at + 4, true),
    offset: view.getBigUint64(at + 8, true),
    address: view.getBigUint64(at + 16, true),
    fileSize: view.getBigUint64(at + 32, true),
    memorySize: view.getBigUint64(at + 40, true),
  };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
