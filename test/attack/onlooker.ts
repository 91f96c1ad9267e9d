import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { NodeSlot } from '../fault/rig/node-slot.js';
import { repository } from '../fault/rig/repository.js';
import type { CalmCall, ControlDelay, HoldSample, MachineSample } from './evidence.js';
import { MAX_HOLD_MS, SAMPLE_EVERY_MS } from './judge.js';

const PROGRAM = join(repository, 'test', 'attack', 'onlooker.mjs');

interface Sightings {
  readonly calm: readonly CalmCall[];
  readonly holds: readonly HoldSample[];
  readonly machine: readonly MachineSample[];
  readonly control: readonly ControlDelay[];
}

/** The process that watches, and what it has seen so far. */
export class Onlooker {
  readonly calm: CalmCall[] = [];
  readonly holds: HoldSample[] = [];
  readonly machine: MachineSample[] = [];
  readonly control: ControlDelay[] = [];
  readonly #child: ChildProcess;

  constructor(nodes: readonly NodeSlot[], apiKey: string) {
    const watched = nodes.map(({ name, url, member }) => ({ name, url, pid: member.pid }));
    const task = { nodes: watched, apiKey, maxHoldMs: MAX_HOLD_MS, machineEveryMs: SAMPLE_EVERY_MS };
    this.#child = fork(PROGRAM, {
      env: { PATH: process.env.PATH, ATTACK_ONLOOKER: JSON.stringify(task) },
      execArgv: [],
    });
    this.#child.on('message', (message: Sightings | { done: true }) => {
      if ('done' in message) return;
      for (const call of message.calm) this.calm.push(call);
      for (const sample of message.holds) this.holds.push(sample);
      for (const sample of message.machine) this.machine.push(sample);
      for (const delay of message.control) this.control.push(delay);
    });
  }

  /** Ends it when it has told everything. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.send('stop');
    await ended;
  }

  /** Ends it at once. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
