import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { findSupervisor, readChildMessage } from './supervision.js';

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
