import { describe, expect, it } from 'vitest';
import {
  artifactNamesIn,
  ONE_UPLOAD_BYTES,
  PART_BYTES,
  partBytes,
  partsOf,
  readReference,
} from './artifact.js';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

describe('a target names an artifact', () => {
  it.each<[string, unknown]>([
    ['packer', { name: 'packer', version: null }],
    ['packer@1.4.0', { name: 'packer', version: '1.4.0' }],
    ['team:packer_2.x@v1+build-7', { name: 'team:packer_2.x', version: 'v1+build-7' }],
    [ID, { id: ID }],
    [`${ID}@1`, { name: ID, version: '1' }],
    ['', null],
    ['packer@', null],
    ['@1', null],
    ['a b', null],
    ['a@1@2', null],
    ['a@1/2', null],
    [`a@${'1'.repeat(65)}`, null],
    ['a'.repeat(129), null],
  ])('as %s', (text, expected) => {
    expect(readReference(text)).toEqual(expected);
  });

  it('somewhere in what is defined', () => {
    const graph = {
      a: { target: { type: 'exec', artifact: 'one' } },
      b: { workflow: { c: [{ artifact: 'two' }] } },
    };
    expect([...artifactNamesIn(graph)]).toEqual(['one', 'two']);
    expect([...artifactNamesIn({ artifact: { artifact: 7 } })]).toEqual([]);
  });
});

describe('the parts of an upload', () => {
  it('are none up to a limit, and then all of one size but the last', () => {
    expect(partsOf(ONE_UPLOAD_BYTES)).toBeNull();
    const size = ONE_UPLOAD_BYTES + 1;
    const { count } = partsOf(size)!;
    expect(count).toBe(5);
    const sizes = Array.from({ length: count }, (_, index) => partBytes(size, index + 1));
    expect(sizes).toEqual([PART_BYTES, PART_BYTES, PART_BYTES, PART_BYTES, 1]);
    expect(partsOf(5 * PART_BYTES)!.count).toBe(5);
    expect(partBytes(5 * PART_BYTES, 5)).toBe(PART_BYTES);
  });
});
