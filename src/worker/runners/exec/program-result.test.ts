import { describe, expect, it } from 'vitest';
import type { EndedMessage } from './host/messages.js';
import { executionOf, resultOfProgram } from './program-result.js';

const END: EndedMessage = {
  ...{ type: 'ended', id: 'a', exitCode: 0, signal: null, by: null, hadLeftovers: false, isWhole: true },
  ...{
    stdout: '',
    stdoutBytes: 0,
    stdoutTail: '',
    stderrTail: '',
    isTailCut: { stdout: false, stderr: false },
  },
  ...{ isCut: false, hasFolder: false },
};

function errorOf(change: Partial<EndedMessage>) {
  try {
    resultOfProgram({ ...END, ...change });
    return null;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return { code, message };
  }
}

describe('the end of a program', () => {
  it.each([
    ['{"a": [1, 2]}\n', { a: [1, 2] }],
    ['{"a": [1, 2', null],
    ['[1] [2]', null],
    [`${'['.repeat(48)}${']'.repeat(48)}`, expect.any(Array)],
    [`${'['.repeat(300_000)}${']'.repeat(300_000)}`, null],
    [null, null],
  ])('that prints %j has this result', (stdout, result) => {
    expect(resultOfProgram({ ...END, stdout })).toEqual(result);
  });

  it.each<[Partial<EndedMessage>, string, string]>([
    [{ exitCode: 3 }, 'EXIT_STATUS', 'The program ended with exit code 3.'],
    [{ exitCode: 139 }, 'EXIT_STATUS', 'The program ended with exit code 139 (probably SIGSEGV).'],
    // Nobody knows that memory was the reason, so it is not said.
    [{ exitCode: 137 }, 'EXIT_STATUS', 'The program ended with exit code 137 (probably SIGKILL).'],
    [{ exitCode: null, signal: 'SIGKILL' }, 'SIGNALLED', 'The program was ended by SIGKILL.'],
    [{ exitCode: null, signal: 'SIGXCPU' }, 'LIMIT_EXCEEDED', 'The program used more CPU time than it may.'],
    [{ exitCode: 153 }, 'LIMIT_EXCEEDED', 'The program wrote a larger file than it may.'],
    [
      { exitCode: 137, by: 'memory' },
      'OUT_OF_MEMORY',
      'The program used more memory than it may, and was ended.',
    ],
    // What it printed before it was ended is no result.
    [{ exitCode: 0, by: 'timeout' }, 'TIMED_OUT', 'The program took longer than its timeout, and was ended.'],
  ])('%j is the failure %s', (change, code, message) => {
    expect(errorOf(change)).toEqual({ code, message });
  });

  it('is told with the end of what it printed', () => {
    expect(errorOf({ exitCode: 1, stderrTail: '\n no such file\n' })?.message).toMatch(
      /code 1\.\nno such file$/,
    );
    const begun = { isolation: 'none', limits: {} } as const;
    expect(executionOf(begun, END)).toEqual({ ...begun, exitCode: 0 });
    const end = {
      ...END,
      exitCode: null,
      signal: 'SIGKILL',
      by: 'memory',
      isCut: true,
      stderrTail: 'x',
    } as const;
    expect(executionOf(begun, end)).toEqual({
      ...begun,
      ...{ signal: 'SIGKILL', outOfMemory: true, cut: true, stderr: 'x' },
    });
  });
});
