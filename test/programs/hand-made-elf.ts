/**
 * A static program for Linux of a few hundred bytes, made by hand, for machines without a compiler: it copies its stdin
 * to its stdout and ends with the exit code that it was made with.
 */

export type HandMadeMachine = 'x64' | 'arm64';

const ADDRESS = 0x400000;
const HEADERS = 64 + 56;

/** The bytes of the program. */
export function handMadeElf(machine: HandMadeMachine, exitCode = 0): Buffer {
  const code = machine === 'x64' ? x64Code(exitCode) : arm64Code(exitCode);
  const bytes = HEADERS + code.length;
  const header = Buffer.alloc(64);
  header.write('\x7fELF', 'latin1');
  header.set([2, 1, 1], 4);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(machine === 'x64' ? 62 : 183, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(ADDRESS + HEADERS), 24);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt16LE(64, 52);
  header.writeUInt16LE(56, 54);
  header.writeUInt16LE(1, 56);
  const segment = Buffer.alloc(56);
  segment.writeUInt32LE(1, 0);
  segment.writeUInt32LE(5, 4);
  segment.writeBigUInt64LE(BigInt(ADDRESS), 16);
  segment.writeBigUInt64LE(BigInt(ADDRESS), 24);
  segment.writeBigUInt64LE(BigInt(bytes), 32);
  segment.writeBigUInt64LE(BigInt(bytes), 40);
  segment.writeBigUInt64LE(0x1000n, 48);
  return Buffer.concat([header, segment, code]);
}

/** A loop of read(0, stack, 4096) and write(1, stack, n), then exit(code). */
function x64Code(exitCode: number): Buffer {
  return Buffer.from([
    ...[0x48, 0x81, 0xec, 0x00, 0x10, 0x00, 0x00], // sub rsp, 4096
    ...[0x31, 0xc0, 0x31, 0xff, 0x48, 0x89, 0xe6], // xor eax, eax; xor edi, edi; mov rsi, rsp
    ...[0xba, 0x00, 0x10, 0x00, 0x00, 0x0f, 0x05], // mov edx, 4096; syscall
    ...[0x48, 0x85, 0xc0, 0x7e, 0x11], // test rax, rax; jle to the end
    ...[0x48, 0x89, 0xc2, 0xb8, 0x01, 0x00, 0x00, 0x00], // mov rdx, rax; mov eax, 1
    ...[0x89, 0xc7, 0x48, 0x89, 0xe6, 0x0f, 0x05], // mov edi, eax; mov rsi, rsp; syscall
    ...[0xeb, 0xdc], // jmp to the read
    ...[0xbf, exitCode, 0x00, 0x00, 0x00], // mov edi, code
    ...[0xb8, 0x3c, 0x00, 0x00, 0x00, 0x0f, 0x05], // mov eax, 60; syscall
  ]);
}

function arm64Code(exitCode: number): Buffer {
  const words = [
    0xd14007ff, // sub sp, sp, #4096
    0xd2800000, // mov x0, #0
    0x910003e1, // mov x1, sp
    0xd2820002, // mov x2, #4096
    0xd28007e8, // mov x8, #63 (read)
    0xd4000001, // svc #0
    0xf100001f, // cmp x0, #0
    0x540000ed, // b.le to the end
    0xaa0003e2, // mov x2, x0
    0xd2800020, // mov x0, #1
    0x910003e1, // mov x1, sp
    0xd2800808, // mov x8, #64 (write)
    0xd4000001, // svc #0
    0x17fffff4, // b to the read
    (0xd2800000 | (exitCode << 5)) >>> 0, // mov x0, code
    0xd2800ba8, // mov x8, #93 (exit)
    0xd4000001, // svc #0
  ];
  const code = Buffer.alloc(4 * words.length);
  for (const [index, word] of words.entries()) code.writeUInt32LE(word, 4 * index);
  return code;
}
