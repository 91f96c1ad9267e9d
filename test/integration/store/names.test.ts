import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Directory } from '../../../src/dispatch/directory.js';
import { Names } from '../../../src/store/names.js';
import type { Named } from '../../../src/store/needs-digest.js';
import { TENANT, TestShard } from './test-shard.js';

let shard: TestShard;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
});
afterAll(() => close());

/** Text that does not compress, of characters that take as many bytes as their length allows. */
function noise(length: number): string {
  return Array.from({ length }, () => String.fromCharCode(randomInt(0x4e00, 0x9fff))).join('');
}

/** The most and longest labels that a job may require. */
function largestLabels(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 32 }, () => [noise(128), noise(256)]));
}

function named(labels: Record<string, string>, tenant = TENANT): Named {
  const needs = { target: 'handler', handler: 'h'.repeat(128), labels } as const;
  return { tenant, queue: 'q'.repeat(128), needs };
}

const EVERYTHING_IS_USED = {
  isQueueInUse: () => true,
  isNeedsInUse: () => true,
  onNeedsForgotten: () => undefined,
};

describe('needs', () => {
  it('may have the most and longest labels that are allowed, and are read back as they were', async () => {
    const labels = largestLabels();
    const [ids] = await new Names(shard.hot).resolve([named(labels)], 0);
    const directory = new Directory(shard.hot, EVERYTHING_IS_USED);
    await directory.learn([ids!]);
    expect(directory.needsOf(ids!.needs)?.labels).toEqual(labels);
  });

  it('are the same in whatever order labels are written, on every node, and for nobody else', async () => {
    const labels = largestLabels();
    const turned = Object.fromEntries(Object.entries(labels).reverse());
    const others = { ...labels, [noise(128)]: 'x' };
    delete others[Object.keys(labels)[0]!];
    const resolved = await Promise.all(
      Array.from({ length: 4 }, () =>
        new Names(shard.hot).resolve(
          [named(labels), named(turned), named(others), named(labels, 'rival')],
          0,
        ),
      ),
    );
    const [first] = resolved;
    expect(first![1]!.needs).toBe(first![0]!.needs);
    expect(new Set(first!.map((ids) => ids.needs)).size).toBe(3);
    expect(new Set(first!.map((ids) => ids.queue)).size).toBe(2);
    for (const each of resolved) expect(each).toEqual(first);
  });
});

describe('what can be looked up by text fits its index at its longest', () => {
  it.each([
    ['of short characters', noise(512)],
    ['of long characters', Array.from({ length: 512 }, astral).join('')],
  ])('a key %s, of the API and of a transaction', async (_, key) => {
    const tenant = 't'.repeat(128);
    await shard.submit({ key }, { tenant });
    await shard.pool.query('SELECT punctual.submit_job($1, $2)', [
      tenant,
      JSON.stringify({ task: 'a', key }),
    ]);
  });

  function astral(): string {
    return String.fromCodePoint(randomInt(0x20000, 0x2a6d0));
  }
});
