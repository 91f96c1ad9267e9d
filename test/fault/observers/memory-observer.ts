import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MemoryPeak } from '../history.js';
import type { Member } from '../rig/member.js';

const EVERY_MS = 200;

/** Looks at how much memory the nodes use, as the kernel counts it. */
export class MemoryObserver {
  readonly #peaks = new Map<string, number>();
  readonly #stopped = new AbortController();

  constructor(private readonly members: () => readonly Member[]) {}

  get peaks(): MemoryPeak[] {
    return [...this.#peaks].map(([member, megabytes]) => ({ member, megabytes: Math.round(megabytes) }));
  }

  async watch(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      for (const { name, pid } of this.members()) {
        this.#peaks.set(name, Math.max(this.#peaks.get(name) ?? 0, residentMegabytes(pid)));
      }
      await sleep(EVERY_MS);
    }
  }

  stop(): void {
    this.#stopped.abort();
  }
}

/** Zero for a process that is gone, and where the kernel does not tell. */
function residentMegabytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
}
