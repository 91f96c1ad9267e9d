import { expect, it } from 'vitest';
import { handMadeElf } from '../../test/programs/hand-made-elf.js';
import { ELF_HEAD_BYTES } from '../core/elf.js';
import { type Inspected, inspect, inspectedBytes } from './inspected-bytes.js';

const RUN = { runnable: true, scripts: false };

async function passed(
  bytes: Buffer,
  piece: number,
  rules = RUN,
): Promise<{ readonly out: Buffer; readonly found: Inspected | null; readonly taken: number }> {
  let found: Inspected | null = null;
  let taken = 0;
  async function* pieces() {
    for (let from = 0; from < bytes.length; from += piece) {
      taken += 1;
      yield bytes.subarray(from, from + piece);
    }
  }
  const out: Buffer[] = [];
  const passing = inspectedBytes(pieces(), bytes.length, rules, (inspected) => {
    found = inspected;
  });
  for await (const each of passing) out.push(each);
  return { out: Buffer.concat(out), found, taken };
}

it.each([1, 100, ELF_HEAD_BYTES - 1, ELF_HEAD_BYTES, ELF_HEAD_BYTES + 1, 1_000_000])(
  'passes all bytes on, in pieces of %d, once it knows what they are',
  async (piece) => {
    const bytes = Buffer.concat([handMadeElf('arm64'), Buffer.alloc(piece < 100 ? 10 : 200_000, 1)]);
    const { out, found } = await passed(bytes, piece);
    expect(out.equals(bytes)).toBe(true);
    expect(found).toEqual({ kind: 'elf', machine: 'arm64' });
  },
);

it('refuses what cannot be run when its beginning has come, and takes no more of it', async () => {
  let taken = 0;
  async function* pieces() {
    for (; taken < 1_000; taken += 1) yield Buffer.alloc(16_384, 1);
  }
  const reading = async () => {
    for await (const _ of inspectedBytes(pieces(), 1_000 * 16_384, RUN, () => undefined));
  };
  await expect(reading()).rejects.toMatchObject({ code: 'ARTIFACT_NOT_RUNNABLE' });
  expect(taken).toBeLessThan(5);
});

it('leaves it to others to complain about fewer bytes than were said', async () => {
  const found: Inspected[] = [];
  async function* pieces() {
    yield Buffer.from('ab');
  }
  const out: Buffer[] = [];
  for await (const piece of inspectedBytes(pieces(), 10, RUN, (each) => found.push(each))) out.push(piece);
  expect(Buffer.concat(out).toString()).toBe('ab');
  expect(found).toEqual([]);
});

it.each<[string, string, boolean, boolean, string | null]>([
  ['a script', '#!/bin/sh\n', true, false, null],
  ['a script where they are allowed', '#!/bin/sh\n', true, true, 'script'],
  ['a script that is not to be run', '#!/bin/sh\n', false, false, 'script'],
  ['two characters that begin one', '#!', true, true, null],
  ['text that is not to be run', 'hello', false, false, 'file'],
  ['text', 'hello', true, true, null],
  ['a program that is cut off', handMadeElf('x64').toString('latin1').slice(0, -1), true, true, null],
])('%s', (_, text, runnable, scripts, kind) => {
  const bytes = Buffer.from(text, 'latin1');
  const look = () => inspect(bytes, bytes.length, { runnable, scripts });
  if (kind === null) expect(look).toThrow(expect.objectContaining({ code: 'ARTIFACT_NOT_RUNNABLE' }));
  else expect(look().kind).toBe(kind);
});
