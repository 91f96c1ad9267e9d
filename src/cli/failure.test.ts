import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES, PunctualError } from '../core/errors.js';
import { painterFor } from '../core/paint.js';
import { failureDocument, failureOf, renderFailure } from './failure.js';

const paint = painterFor({ isTTY: false }, {});

describe('failureOf', () => {
  it('takes exit code and advice from the code of the error', () => {
    const failure = failureOf(new PunctualError('JOB_NOT_FOUND', 'No job has the id x.'));
    expect(failure).toMatchObject({
      exitCode: 5,
      code: 'JOB_NOT_FOUND',
      hint: ERROR_CODES.JOB_NOT_FOUND.hint,
    });
  });

  it('turns what commander says into one sentence with the suggestion', () => {
    const thrown = new CommanderError(
      1,
      'commander.unknownOption',
      "error: unknown option '--prot'\n(Did you mean --port?)",
    );
    expect(failureOf(thrown)).toMatchObject({
      exitCode: 2,
      detail: "unknown option '--prot'; did you mean --port?",
    });
  });

  it('does not take help for a failure', () => {
    expect(failureOf(new CommanderError(0, 'commander.helpDisplayed', '(outputHelp)'))).toBeNull();
  });

  it('survives whatever was thrown', () => {
    expect(failureOf(undefined)).toMatchObject({ exitCode: 1, code: 'INTERNAL' });
    expect(failureOf('text')).toMatchObject({ exitCode: 1, detail: 'text' });
  });
});

describe('renderFailure', () => {
  it('says what went wrong, where, and what to do', () => {
    const error = new PunctualError('INVALID_REQUEST', '/a: bad (and 1 more)', {
      errors: [
        { pointer: '/a', detail: 'bad' },
        { pointer: '/b', detail: 'worse' },
      ],
    });
    const failure = failureOf(error)!;
    const lines = renderFailure(failure, paint).split('\n');
    expect(lines[0]).toBe('error: /a: bad (and 1 more) (INVALID_REQUEST)');
    expect(lines).toContain('  /b: worse');
    expect(lines).toContain(`  ${ERROR_CODES.INVALID_REQUEST.hint} \`--help\` lists what the command takes.`);
    expect(JSON.parse(failureDocument(failure)).error).toMatchObject({
      code: 'INVALID_REQUEST',
      errors: { length: 2 },
    });
  });
});
