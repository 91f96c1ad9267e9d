import { CommanderError } from 'commander';
import { ERROR_CODES, type ErrorCode, type FieldError, messageOf, PunctualError } from '../core/errors.js';
import { type Paint, printable } from '../core/paint.js';

/** A wrong field of a request, and what was typed for it. */
export interface InputError extends FieldError {
  /** The option or argument. */
  readonly input?: string;
}

/** How a run that did not go well ends: its exit code and what is said about it. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string | null;
  readonly errors: readonly InputError[];
}

export const EXIT_USAGE = 2;
export const EXIT_INTERRUPTED = 130;

/** What is added to the hint of an error for somebody who typed a command. */
const HELP: Partial<Record<ErrorCode, string>> = {
  INVALID_REQUEST: '`--help` lists what the command takes.',
  USAGE: '`--help` after any command shows how it is used.',
};

function hintOf(code: ErrorCode, hint: string | null): string | null {
  return [hint, HELP[code]].filter(Boolean).join(' ') || null;
}

const SUGGESTION = /^error: |\n\(Did you mean (one of )?(.+)\?\)$/gs;

function usageFailure(error: CommanderError): Failure {
  const detail = error.message.replace(SUGGESTION, (_match, _several, names?: string) =>
    names ? `; did you mean ${names}?` : '',
  );
  return { exitCode: EXIT_USAGE, code: 'USAGE', detail, hint: hintOf('USAGE', null), errors: [] };
}

/** Explains anything that was thrown; null when it was no failure but the answer to `--help` or `--version`. */
export function failureOf(thrown: unknown): Failure | null {
  if (thrown instanceof CommanderError) {
    if (thrown.code === 'commander.helpDisplayed' || thrown.code === 'commander.version') return null;
    if (thrown.code === 'commander.help' && thrown.exitCode === 0) return null;
    if (thrown.code === 'commander.help') {
      return { exitCode: EXIT_USAGE, code: 'USAGE', detail: 'a command is missing', hint: null, errors: [] };
    }
    return usageFailure(thrown);
  }
  if (thrown instanceof PunctualError) {
    const { exitCode, code, message, hint, errors } = thrown;
    return { exitCode, code, detail: message, hint: hintOf(code, hint), errors };
  }
  const { exit: exitCode, hint } = ERROR_CODES.INTERNAL;
  return { exitCode, code: 'INTERNAL', detail: messageOf(thrown), hint, errors: [] };
}

/** What went wrong and what to do, as lines for a terminal. */
export function renderFailure(failure: Failure, paint: Paint): string {
  const detail = failure.detail.split('\n').map(printable).join('\n  ');
  const lines = [`${paint('red', 'error:')} ${detail} ${paint('dim', `(${failure.code})`)}`];
  if (failure.errors.length > 1) {
    for (const { pointer, input = pointer, detail } of failure.errors) {
      lines.push(`  ${printable(`${input}: ${detail}`)}`);
    }
  }
  if (failure.hint) lines.push(`  ${failure.hint}`);
  return `${lines.join('\n')}\n`;
}

/** The same for programs: one JSON document, which goes to stderr so that stdout stays data. */
export function failureDocument(failure: Failure): string {
  const { code, detail, hint, errors } = failure;
  return `${JSON.stringify({ error: { code, detail, ...(hint && { hint }), ...(errors.length && { errors }) } })}\n`;
}
