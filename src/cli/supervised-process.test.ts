import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogFile } from './command-log.js';
import { findSupervisor, readChildMessage, restartDelayMs, SupervisedProcess } from './supervised-process.js';

/** What a child process of these tests does, as a script for `node -e`. */
const READY = `process.send({ type: 'ready' }); setTimeout(() => {}, 60_000);`;

let folder: string;
const started: SupervisedProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-supervised-'));
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop()));
  rmSync(folder, { recursive: true });
});

function supervise(script: string, stopTimeoutMs = 5_000) {
  const reports: string[] = [];
  let heard: (line: string) => void = () => undefined;
  const each = new SupervisedProcess({
    name: 'child',
    command: [process.execPath, '-e', script],
    environment: { PATH: process.env.PATH },
    folder,
    logFile: new LogFile(join(folder, 'child.log')),
    stopTimeoutMs,
    report: (line) => {
      reports.push(line);
      heard(line);
    },
  });
  started.push(each);
  const report = (part: string) =>
    new Promise<void>((resolve) => {
      heard = (line) => line.includes(part) && resolve();
      if (reports.some((line) => line.includes(part))) resolve();
    });
  return { each, reports, report };
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('SupervisedProcess', () => {
  it('starts a process again that was killed', async () => {
    const { each, report } = supervise(READY);
    await each.start();
    const first = each.pid!;
    process.kill(first, 'SIGKILL');
    await report('was killed by SIGKILL; it restarts in 2s');
    await report('child runs again');
    expect(each.pid).not.toBe(first);
    expect(isAlive(each.pid!)).toBe(true);
  });

  it('gives the error of a process that ended before it was ready, and does not start it again', async () => {
    const { each, reports } = supervise(
      `process.send({ type: 'failed', code: 'PORT_IN_USE', detail: 'Port 1 is taken.' }, () => process.exit(1));`,
    );
    await expect(each.start()).rejects.toMatchObject({ code: 'PORT_IN_USE', message: 'Port 1 is taken.' });
    expect(reports).toEqual([]);
  });

  it('tells what a process said that crashed before it was ready', async () => {
    const { each } = supervise(`console.error('out of luck'); process.exit(3);`);
    await expect(each.start()).rejects.toThrow(/ended with code 3 before it was ready/);
  });

  it('ends a process that does not stop in time', async () => {
    const { each, reports } = supervise(`process.on('SIGTERM', () => {}); ${READY}`, 100);
    await each.start();
    const pid = each.pid!;
    await each.stop();
    expect(isAlive(pid)).toBe(false);
    expect(reports.at(-1)).toContain('did not stop in time');
  });

  it('keeps every line in the log and reports warnings only', async () => {
    const lines = [
      { level: 30, time: 1, msg: 'fine' },
      { level: 40, time: 2, msg: 'careful' },
    ];
    const { each, reports, report } = supervise(
      `${lines.map((line) => `console.error(${JSON.stringify(JSON.stringify(line))});`).join('')}${READY}`,
    );
    await each.start();
    await report('careful');
    await each.stop();
    expect(reports).toEqual(['child: careful']);
    expect(readFileSync(join(folder, 'child.log'), 'utf8')).toContain('"fine"');
  });
});

describe('restartDelayMs', () => {
  it('grows with every end in a row, up to half a minute', () => {
    expect([1, 2, 3, 4, 5, 6].map(restartDelayMs)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });
});

function child(env: Record<string, string>, connected = true) {
  const sent: unknown[] = [];
  const emitter = new EventEmitter();
  return {
    env,
    connected,
    sent,
    send: (message: unknown) => sent.push(message) > 0,
    once: emitter.once.bind(emitter),
    emitter,
  };
}

describe('supervision', () => {
  it('is there only for processes that `punctual up` started', () => {
    expect(findSupervisor(child({}))).toBeNull();
    expect(findSupervisor({ env: { PUNCTUAL_SUPERVISED: '1' }, once: () => undefined })).toBeNull();
  });

  it('tells the child when the supervisor is gone', () => {
    const process = child({ PUNCTUAL_SUPERVISED: '1' });
    const supervisor = findSupervisor(process)!;
    expect(supervisor.gone.aborted).toBe(false);
    process.emitter.emit('disconnect');
    expect(supervisor.gone.aborted).toBe(true);
    expect(findSupervisor(child({ PUNCTUAL_SUPERVISED: '1' }, false))!.gone.aborted).toBe(true);
  });

  it('carries readiness and failures, and nothing else', () => {
    const process = child({ PUNCTUAL_SUPERVISED: '1' });
    const supervisor = findSupervisor(process)!;
    supervisor.ready();
    supervisor.failed('NO_SUCH_CODE', 'why');
    expect(process.sent.map(readChildMessage)).toEqual([
      { type: 'ready' },
      { type: 'failed', code: 'INTERNAL', detail: 'why' },
    ]);
    for (const other of [null, 'ready', 1, {}, { type: 'failed' }, { type: 'x' }]) {
      expect(readChildMessage(other)).toBeNull();
    }
  });
});
