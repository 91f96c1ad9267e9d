import { expect, it, onTestFinished, vi } from 'vitest';
import { task } from '../../src/core/task.js';
import { startNode } from '../../src/server.js';
import { createTestDatabase } from '../database.js';

it('a node that is told to be silent silences its workers, unless they have a log of their own', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  const node = await startNode({ databaseUrl: database.url, log: false });
  onTestFinished(() => node.stop(), 30_000);
  const broken = task('broken', { retry: { maxAttempts: 1 } }, async () => {
    throw new Error('as always');
  });
  const worker = node.punctual.worker([broken]);
  await worker.start();
  const job = await node.punctual.submit(broken);
  await expect(job.result()).rejects.toThrow('as always');
  await worker.drain();
  expect(
    written.mock.calls.map(([text]) => String(text)).filter((text) => /worker|attempt/.test(text)),
  ).toEqual([]);

  const lines: string[] = [];
  const note = (_: unknown, message: string) => void lines.push(message);
  const own = node.punctual.worker([broken], { log: { debug: note, info: note, warn: note, error: note } });
  await own.start();
  await own.drain();
  expect(lines).toContain('drained and left');
}, 60_000);
