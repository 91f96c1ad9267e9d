import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AttemptResult } from '../core/wire.js';
import { decodeRecords, encodeRecords, type ResultRecord } from './result-file.js';
import { ResultStore } from './result-store.js';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-results-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const result = (jobId: string, value: unknown = null): AttemptResult => ({
  jobId,
  fence: 1,
  outcome: 'succeeded',
  result: value,
});

const ids = (store: ResultStore) => store.left.map(({ jobId }) => jobId);

describe('results on disk', () => {
  it('are there for the next worker, with the session they were made in, unless they were answered', async () => {
    const folder = newFolder();
    const first = ResultStore.open(folder);
    expect(first.left).toEqual([]);
    expect(first.previousSession).toBeNull();
    first.noteSession({ workerId: 'session-1', shard: 2 });
    await first.keep([result('a', { text: 'line\nline \u2028 ü' }), result('b'), result('c')]);
    first.release(result('b'));
    await first.tidy();
    first.close('at-once');
    const second = ResultStore.open(folder);
    expect(second.previousSession).toEqual({ workerId: 'session-1', shard: 2 });
    expect(second.left).toEqual([result('a', { text: 'line\nline \u2028 ü' }), result('c')]);
    second.close('at-once');
  });

  it('count once they are safe there', async () => {
    const store = ResultStore.open(newFolder());
    const kept = store.keep([result('a')]);
    expect(store.size).toBe(0);
    await kept;
    expect(store.size).toBe(1);
    store.close('at-once');
  });

  it('leave nothing behind when all was answered and the worker left in order', async () => {
    const folder = newFolder();
    const store = ResultStore.open(folder);
    store.noteSession({ workerId: 'session-1', shard: 2 });
    await store.keep([result('a')]);
    store.release(result('a'));
    await store.tidy();
    store.close('in-order');
    expect(statSync(join(folder, 'results')).size).toBe(0);
  });

  it('survive a process that does not get to close its folder, also in its last moment', async () => {
    const folder = newFolder();
    const store = ResultStore.open(folder);
    store.noteSession({ workerId: 'session-1', shard: 2 });
    const keeping = store.keep([result('a')]);
    store.keepNow([result('a'), result('b')]);
    const records = decodeRecords(readFileSync(join(folder, 'results'), 'utf8'));
    expect(records).toContainEqual({ kind: 'session', workerId: 'session-1', shard: 2 });
    const kept = records.flatMap((each) => (each.kind === 'kept' ? [each.result.jobId] : []));
    expect(new Set(kept)).toEqual(new Set(['a', 'b']));
    await keeping;
    store.close('at-once');
  });

  it('are read back past a line that was cut short and lines that were spoiled', async () => {
    const folder = newFolder();
    const path = join(folder, 'results');
    const store = ResultStore.open(folder);
    await store.keep([result('a')]);
    appendFileSync(path, 'ffffffff {"kind":"kept","result":{"jobId":"spoiled","fence":1}}\n0000');
    await store.keep([result('b')]);
    await store.keep([result('c')]);
    truncateSync(path, statSync(path).size - 5);
    const lines = readFileSync(path, 'utf8');
    expect(decodeRecords(lines)).toMatchObject([{ result: { jobId: 'a' } }, { result: { jobId: 'b' } }]);
    store.close('at-once');
  });

  it('take up a bounded room', async () => {
    const folder = newFolder();
    const store = ResultStore.open(folder, 1_000);
    const many = Array.from({ length: 50 }, (_, index) => result(`job-${index}`));
    await expect(store.keep(many)).rejects.toThrow('kept in memory only');
    expect(store.size).toBeGreaterThan(5);
    expect(statSync(join(folder, 'results')).size).toBeLessThanOrEqual(1_001);
    store.close('at-once');
  });

  it('do not pile up in the file while results come and go', async () => {
    const folder = newFolder();
    const store = ResultStore.open(folder);
    await store.keep([result('stays')]);
    for (let round = 0; round < 60; round++) {
      const passing = result(`job-${round}`, 'x'.repeat(10_000));
      await store.keep([passing]);
      store.release(passing);
      await store.tidy();
    }
    expect(statSync(join(folder, 'results')).size).toBeLessThan(100_000);
    store.close('at-once');
    const next = ResultStore.open(folder);
    expect(ids(next)).toEqual(['stays']);
    next.close('at-once');
  });

  it('belong to one worker at a time', () => {
    const folder = newFolder();
    const store = ResultStore.open(folder);
    expect(() => ResultStore.open(folder)).toThrow('in use by another worker of this process');
    store.close('in-order');
    ResultStore.open(folder).close('in-order');
  });

  it('need a folder that can be made', () => {
    const folder = newFolder();
    appendFileSync(join(folder, 'file'), '');
    expect(() => ResultStore.open(join(folder, 'file', 'below'))).toThrow('Results cannot be kept in');
  });

  it('are complete up to the line in which the file was cut, wherever that is', () => {
    const record = fc.record({ jobId: fc.string(), value: fc.jsonValue() });
    fc.assert(
      fc.property(fc.array(record, { maxLength: 8 }), fc.nat(1_000), (records, cut) => {
        const written = records.map(
          ({ jobId, value }): ResultRecord => ({
            kind: 'kept',
            result: result(jobId, value),
          }),
        );
        const bytes = encodeRecords(written);
        const read = decodeRecords(bytes.subarray(0, Math.max(0, bytes.length - cut)).toString());
        expect(read).toEqual(JSON.parse(JSON.stringify(written.slice(0, read.length))));
        if (cut === 0) expect(read.length).toBe(written.length);
      }),
    );
  });
});
