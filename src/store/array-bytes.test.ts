import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { binaryArray } from './array-bytes.js';

/** Takes an array apart as Postgres does, into the bytes of its elements. */
function read(array: Buffer): { oid: number; hasNull: boolean; values: (string | null)[] } {
  const [dimensions, flags, oid] = [0, 4, 8].map((at) => array.readInt32BE(at));
  const values: (string | null)[] = [];
  const head = { oid: oid!, hasNull: flags === 1, values };
  if (dimensions === 0) return head;
  expect(array.readInt32BE(16)).toBe(1);
  let at = 20;
  for (let left = array.readInt32BE(12); left > 0; left--) {
    const length = array.readInt32BE(at);
    at += 4;
    values.push(length < 0 ? null : array.toString('hex', at, at + length));
    at += Math.max(0, length);
  }
  expect(at).toBe(array.length);
  return head;
}

const valuesOf: (...args: Parameters<typeof binaryArray>) => (string | null)[] = (type, values) =>
  read(binaryArray(type, values)).values;

describe('an array of bytes for Postgres', () => {
  it('holds the bytes of each value', () => {
    expect(valuesOf('uuid', ['01a1ed8f-859d-70ca-b546-e1069728837c'])).toEqual([
      '01a1ed8f859d70cab546e1069728837c',
    ]);
    expect(valuesOf('int', [1, -1, 2_147_483_647])).toEqual(['00000001', 'ffffffff', '7fffffff']);
    expect(valuesOf('smallint', [1, -32_768])).toEqual(['0001', '8000']);
    expect(valuesOf('boolean', [true, false])).toEqual(['01', '00']);
  });

  it('says whether a value is missing', () => {
    expect(read(binaryArray('int', [1, null]))).toEqual({
      oid: 23,
      hasNull: true,
      values: ['00000001', null],
    });
    expect(read(binaryArray('int', [1]))).toMatchObject({ hasNull: false });
  });

  it('has no dimension when it is empty', () => {
    expect(read(binaryArray('uuid', []))).toEqual({ oid: 2950, hasNull: false, values: [] });
  });

  it('holds every whole number that JavaScript does', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger()), (numbers) => {
        const bytes = valuesOf('bigint', numbers);
        expect(bytes.map((hex) => Number(BigInt.asIntN(64, BigInt(`0x${hex}`))))).toEqual(
          numbers.map((number) => number + 0),
        );
      }),
    );
  });

  it('holds every UUID, in whichever case', () => {
    fc.assert(
      fc.property(fc.array(fc.uuid()), (ids) => {
        const hex = ids.map((id) => id.replaceAll('-', ''));
        expect(valuesOf('uuid', ids)).toEqual(hex);
        expect(
          valuesOf(
            'uuid',
            ids.map((id) => id.toUpperCase()),
          ),
        ).toEqual(hex);
      }),
    );
  });

  it('refuses what would be stored as something else', () => {
    expect(() => binaryArray('bigint', [1.5])).toThrow(TypeError);
    expect(() => binaryArray('bigint', [2 ** 53])).toThrow(TypeError);
    expect(() => binaryArray('int', [2 ** 31])).toThrow(TypeError);
    expect(() => binaryArray('int', ['1' as never])).toThrow(TypeError);
    expect(() => binaryArray('bigint', ['1' as never])).toThrow(TypeError);
    expect(() => binaryArray('smallint', [32_768])).toThrow(TypeError);
    expect(() => binaryArray('uuid', ['01a1ed8f-859d-70ca-b546-e1069728837'])).toThrow(TypeError);
    expect(() => binaryArray('uuid', ['01a1ed8f-859d-70ca-b546-e1069728837g'])).toThrow(TypeError);
    expect(() => binaryArray('uuid', ['01a1ed8f-859d-70ca-b546-e1069728837é'])).toThrow(TypeError);
  });
});
