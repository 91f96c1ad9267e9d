import type { Fault } from '../fault.js';

/** How long a program may wait for its worker to need the store. */
const PATIENCE_MS = 5_000;

/** The store of artifacts takes seconds for what a worker has to download again, which it lets its programs wait for. */
export const fault: Fault = {
  kind: 'store-slow',
  scenario: 'exec-mixed',
  lane: 'workers',
  async inject(scene, random) {
    const worker = scene.someWorker(random);
    const downloadMs = random.between(1_000, 4_000);
    for (const link of worker.links) link.downloadMs = downloadMs;
    const slowed = () => worker.links.reduce((sum, link) => sum + link.slowed, 0);
    const before = slowed();
    worker.forgetPrograms();
    await scene.until(() => slowed() > before, PATIENCE_MS);
    const count = slowed() - before;
    for (const link of worker.links) link.downloadMs = 0;
    const detail = `${count} downloads of ${worker.member.name} took ${downloadMs} ms`;
    return { targets: [worker.member.name], effective: count > 0, detail };
  },
};
