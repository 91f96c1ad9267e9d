import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HandMadeMachine, handMadeElf } from '../../test/programs/hand-made-elf.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { ELF_HEAD_BYTES, elfProblem, readElf } from './elf.js';

const sound = handMadeElf('x64');

/** The verdict about the sound program after a change of its bytes. */
function verdictAfter(change: (bytes: Buffer) => void, fileBytes = sound.length): string | null {
  const bytes = Buffer.from(sound);
  change(bytes);
  return elfProblem(bytes, fileBytes, 'x64');
}

describe('a static program', () => {
  it('is known with its processor, and may be run on that one only', () => {
    expect(readElf(sound, sound.length)).toEqual({ isProgram: true, machine: 'x64' });
    expect(readElf(handMadeElf('arm64'), handMadeElf('arm64').length)).toEqual({
      isProgram: true,
      machine: 'arm64',
    });
    expect(elfProblem(sound, sound.length, 'x64')).toBeNull();
    expect(elfProblem(sound, sound.length, 'arm64')).toContain('made for x64 and this machine is arm64');
  });

  it.each<[string, string, (bytes: Buffer) => void]>([
    ['no ELF file', 'is no ELF file', (bytes) => bytes.write('MZ')],
    ['a script', 'a script', (bytes) => bytes.write('#!/bin/sh\n')],
    ['of 32 bits', '64-bit', (bytes) => bytes.writeUInt8(1, 4)],
    ['of the other order of bytes', 'little-endian', (bytes) => bytes.writeUInt8(2, 5)],
    ['an object file', 'object file', (bytes) => bytes.writeUInt16LE(1, 16)],
    ['a core dump', 'ELF type 4', (bytes) => bytes.writeUInt16LE(4, 16)],
    ['of an unknown machine', 'ELF machine 7', (bytes) => bytes.writeUInt16LE(7, 18)],
    ['with headers of another size', 'wrong size', (bytes) => bytes.writeUInt16LE(57, 54)],
    ['without headers', '0 program headers', (bytes) => bytes.writeUInt16LE(0, 56)],
    ['with 129 headers', '129 program headers', (bytes) => bytes.writeUInt16LE(129, 56)],
    ['with headers beyond its end', 'it is cut off', (bytes) => bytes.writeBigUInt64LE(1n << 63n, 32)],
    ['dynamic', 'linked dynamically', (bytes) => bytes.writeUInt32LE(3, 64)],
    ['with a segment beyond its end', 'cut off', (bytes) => bytes.writeBigUInt64LE(1n << 62n, 96)],
    ['with an entry outside', 'entry point', (bytes) => bytes.writeBigUInt64LE(1n, 24)],
    ['with an entry in data', 'entry point', (bytes) => bytes.writeUInt32LE(6, 68)],
    ['with a damaged note', 'note of properties', (bytes) => bytes.writeUInt32LE(0x6474e553, 64)],
  ])('%s is refused', (_, why, change) => {
    expect(verdictAfter(change)).toContain(why);
  });

  it('is refused when its headers are far from its beginning', () => {
    const far = (bytes: Buffer) => bytes.writeBigUInt64LE(BigInt(ELF_HEAD_BYTES), 32);
    expect(verdictAfter(far, 2 * ELF_HEAD_BYTES)).toContain('not within its first');
  });

  it('is refused when it is empty, or cut at any place', () => {
    expect(readElf(Buffer.alloc(0), 0)).toEqual({ isProgram: false, why: 'it is empty' });
    for (let bytes = 1; bytes < sound.length; bytes++)
      expect(readElf(sound.subarray(0, bytes), bytes).isProgram).toBe(false);
  });
});

it('every change of the headers is judged without an exception, and none makes a dynamic program static', () => {
  const change = fc.tuple(fc.nat(sound.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(ELF_HEAD_BYTES), (changes, size) => {
      const bytes = Buffer.from(sound);
      for (const [at, value] of changes) bytes[at] = value;
      const verdict = readElf(bytes, size);
      if (!verdict.isProgram) return verdict.why !== '';
      const segment = bytes.readBigUInt64LE(72) + bytes.readBigUInt64LE(96);
      return bytes.readUInt32LE(64) !== 3 && segment <= BigInt(size) && bytes.readUInt16LE(54) === 56;
    }),
  );
});

it('what the check accepts runs on this machine, and the program that runs this test is dynamic', async ({
  skip,
}) => {
  if (process.platform !== 'linux') skip('only Linux runs ELF files');
  const own = readFileSync(process.execPath);
  expect(elfProblem(own.subarray(0, ELF_HEAD_BYTES), own.length, process.arch)).toContain(
    'linked dynamically',
  );
  if (process.arch !== 'x64' && process.arch !== 'arm64') skip(`no hand-made binary for ${process.arch}`);
  const file = join(await temporaryFolder(), 'echo');
  writeFileSync(file, handMadeElf(process.arch as HandMadeMachine, 7), { mode: 0o755 });
  const { status, stdout } = spawnSync(file, { input: 'x'.repeat(10_000), encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 7, stdout: 'x'.repeat(10_000) });
});
