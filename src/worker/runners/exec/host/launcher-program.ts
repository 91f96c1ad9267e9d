/**
 * The launcher: a program of some forty instructions that makes calls to the kernel, one after another, as its stdin says. The exec host
 * has it start programs, because it is so small: Node would have to copy the tables of some 50 MB of memory for each start, which costs
 * twice as much time as a small program takes from its start to its end.
 *
 * It decides nothing. What is called, with what arguments and in what order is put together in `program-calls.ts`; here is only the loop,
 * which in C would be
 *
 *     for (;;) {
 *       struct { uint64_t bytes; struct call *first; } *message = (void *)MESSAGE_AT;
 *       if (recv(0, message, 16, MSG_WAITALL) != 16) exit_group(0);
 *       if (recv(0, message + 1, message->bytes, MSG_WAITALL) != message->bytes) exit_group(0);
 *       for (struct call *call = message->first; call->number >= 0;) {
 *         int64_t result = syscall(call->number, call->arguments[0 … 3], 0, 0);
 *         *call->keepAt = result;
 *         call = (char *)call + (result < 0 ? call->ifNegative : result == 0 ? call->ifZero : call->ifPositive);
 *       }
 *     }
 *
 * A message is received to the address for which it was made, so that what points into it is already right. The loop keeps everything in
 * registers that the kernel leaves alone: what `vfork` makes goes on in the same memory.
 */

/** Where a message is received. */
export const MESSAGE_AT = 0x1000_0000;
/** The most bytes of one: more than payload, arguments and environment together usually have. Memory is taken as it is used. */
export const MESSAGE_BYTES = 16 * 1024 * 1024;

const CODE_AT = 0x40_0000;
const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const [READ_EXECUTE, READ_WRITE] = [5, 6];
const [LOAD, STACK] = [1, 0x6474_e551];
const PAGE = 0x1000;

interface LauncherCode {
  /** The number of the processor in the header of a program. */
  readonly machine: number;
  /** The instructions, each as its bytes in the order of memory. */
  readonly instructions: string;
}

// biome-ignore format: instructions are read by the line
const CODE: Readonly<Record<string, LauncherCode>> = {
  x64: { machine: 62, instructions: `
    45 31 c0                 xor    r8d, r8d              the fifth and sixth argument of all calls
    45 31 c9                 xor    r9d, r9d
    31 ff                    xor    edi, edi              message: recv(0,
    be 00 00 00 10           mov    esi, 0x10000000         MESSAGE_AT,
    ba 10 00 00 00           mov    edx, 16                 16,
    41 ba 00 01 00 00        mov    r10d, 0x100             MSG_WAITALL)
    b8 2d 00 00 00           mov    eax, 45
    0f 05                    syscall
    48 83 f8 10              cmp    rax, 16
    75 52                    jne    quit
    31 ff                    xor    edi, edi              recv(0,
    48 8b 16                 mov    rdx, [rsi]              message->bytes
    48 8b 5e 08              mov    rbx, [rsi + 8]        call = message->first
    83 c6 10                 add    esi, 16                 to message + 1)
    b8 2d 00 00 00           mov    eax, 45
    0f 05                    syscall
    48 39 d0                 cmp    rax, rdx
    75 3a                    jne    quit
    48 8b 03                 mov    rax, [rbx]            step: call->number
    48 85 c0                 test   rax, rax
    78 c1                    js     message               the list is done
    48 8b 7b 08              mov    rdi, [rbx + 8]        call->arguments
    48 8b 73 10              mov    rsi, [rbx + 16]
    48 8b 53 18              mov    rdx, [rbx + 24]
    4c 8b 53 20              mov    r10, [rbx + 32]
    0f 05                    syscall
    48 8b 4b 28              mov    rcx, [rbx + 40]       call->keepAt
    48 89 01                 mov    [rcx], rax
    48 85 c0                 test   rax, rax
    78 0e                    js     negative
    74 06                    jz     zero
    48 03 5b 40              add    rbx, [rbx + 64]       call->ifPositive
    eb d2                    jmp    step
    48 03 5b 38              add    rbx, [rbx + 56]       zero: call->ifZero
    eb cc                    jmp    step
    48 03 5b 30              add    rbx, [rbx + 48]       negative: call->ifNegative
    eb c6                    jmp    step
    31 ff                    xor    edi, edi              quit: exit_group(0)
    b8 e7 00 00 00           mov    eax, 231
    0f 05                    syscall` },
  arm64: { machine: 183, instructions: `
    e4 03 1f aa              mov    x4, xzr               the fifth and sixth argument of all calls
    e5 03 1f aa              mov    x5, xzr
    e0 03 1f aa              mov    x0, xzr               message: recv(0,
    01 00 a2 d2              mov    x1, 0x10000000          MESSAGE_AT,
    02 02 80 d2              mov    x2, 16                  16,
    03 20 80 d2              mov    x3, 0x100               MSG_WAITALL)
    e8 19 80 d2              mov    x8, 207
    01 00 00 d4              svc    0
    1f 40 00 f1              cmp    x0, 16
    e1 02 00 54              b.ne   quit
    22 4c 40 a9              ldp    x2, x19, [x1]         recv(0, … message->bytes); call = message->first
    21 40 00 91              add    x1, x1, 16              to message + 1
    e0 03 1f aa              mov    x0, xzr
    01 00 00 d4              svc    0
    1f 00 02 eb              cmp    x0, x2
    21 02 00 54              b.ne   quit
    68 02 40 f9              ldr    x8, [x19]             step: call->number
    28 fe ff b7              tbnz   x8, 63, message       the list is done
    60 86 40 a9              ldp    x0, x1, [x19, 8]      call->arguments
    62 8e 41 a9              ldp    x2, x3, [x19, 24]
    01 00 00 d4              svc    0
    69 16 40 f9              ldr    x9, [x19, 40]         call->keepAt
    20 01 00 f9              str    x0, [x9]
    80 00 00 b4              cbz    x0, zero
    a0 00 f8 b7              tbnz   x0, 63, negative
    69 22 40 f9              ldr    x9, [x19, 64]         call->ifPositive
    04 00 00 14              b      next
    69 1e 40 f9              ldr    x9, [x19, 56]         zero: call->ifZero
    02 00 00 14              b      next
    69 1a 40 f9              ldr    x9, [x19, 48]         negative: call->ifNegative
    73 02 09 8b              add    x19, x19, x9          next:
    f1 ff ff 17              b      step
    e0 03 1f aa              mov    x0, xzr               quit: exit_group(0)
    c8 0b 80 d2              mov    x8, 94
    01 00 00 d4              svc    0` },
};

/** The file of the launcher; null for a processor whose instructions are not known here. */
export function launcherProgram(architecture: string): Buffer | null {
  const code = CODE[architecture];
  if (code === undefined) return null;
  const { machine, instructions } = code;
  const bytes = Buffer.from(bytesOf(instructions));
  const segments = 3;
  const codeFrom = HEADER_BYTES + segments * PROGRAM_HEADER_BYTES;
  return Buffer.concat([
    fileHeader(machine, CODE_AT + codeFrom, segments),
    segment(LOAD, READ_EXECUTE, CODE_AT, codeFrom + bytes.length, codeFrom + bytes.length),
    segment(LOAD, READ_WRITE, MESSAGE_AT, 0, MESSAGE_BYTES),
    segment(STACK, READ_WRITE, 0, 0, 0),
    bytes,
  ]);
}

function bytesOf(instructions: string): number[] {
  const lines = instructions.trim().split('\n');
  return lines.flatMap((line) => {
    const [bytes] = /^(?:[0-9a-f]{2} )+/.exec(line.trim())!;
    return bytes
      .trim()
      .split(' ')
      .map((byte) => Number.parseInt(byte, 16));
  });
}

/** The header of an ELF program; see elf(5). */
function fileHeader(machine: number, entry: number, segments: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  // 64 bits, little endian, version 1.
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(entry, 24);
  header.writeUInt32LE(HEADER_BYTES, 32);
  header.writeUInt16LE(HEADER_BYTES, 52);
  header.writeUInt16LE(PROGRAM_HEADER_BYTES, 54);
  header.writeUInt16LE(segments, 56);
  return header;
}

/** A part of the memory, filled from the beginning of the file. */
function segment(type: number, flags: number, at: number, fileBytes: number, memoryBytes: number): Buffer {
  const header = Buffer.alloc(PROGRAM_HEADER_BYTES);
  header.writeUInt32LE(type, 0);
  header.writeUInt32LE(flags, 4);
  header.writeUInt32LE(at, 16);
  header.writeUInt32LE(at, 24);
  header.writeUInt32LE(fileBytes, 32);
  header.writeUInt32LE(memoryBytes, 40);
  header.writeUInt32LE(PAGE, 48);
  return header;
}
