import { hostname } from 'node:os';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Log } from '../core/log.js';
import {
  isWritten,
  LINE_LEVELS,
  type LineLevel,
  levelNumber,
  logLine,
  parseLogLine,
  readableLine,
  WARNING_LEVEL,
} from '../core/log-line.js';
import { painterFor } from '../core/paint.js';

/** The part of a stream that a log writes to. */
export interface LogStream {
  readonly isTTY?: boolean | undefined;
  write(text: string, done?: (error?: Error | null) => void): unknown;
  on?(event: 'error', listener: (error: Error) => void): unknown;
}

/** Counts the lines of a log that could not be written, e.g. because a disk was full, for a notice when that works again. */
export class DroppedLines {
  #count = 0;
  #why = '';

  add(count: number, error: unknown): void {
    this.#count += count;
    this.#why = messageOf(error);
  }

  /** Resets the count; returns it with the notice to write. If that cannot be written, the caller adds the count again. */
  take(): { readonly count: number; readonly notice: string } {
    const count = this.#count;
    if (count === 0) return { count, notice: '' };
    this.#count = 0;
    const time = new Date().toISOString();
    const msg = `${count} lines of this log could not be written: ${this.#why}`;
    return { count, notice: `${JSON.stringify({ level: WARNING_LEVEL, time, msg })}\n` };
  }
}

/** Streams whose errors are listened to. Without a listener, a reader that closes the pipe would end the process. */
const heard = new WeakSet<object>();

/** A log on a stream: readable lines if it is a terminal, one JSON document per line elsewhere. */
export function openLineLog(
  stream: LogStream,
  level: string,
  environment: Readonly<Record<string, string | undefined>>,
): Log {
  if (!isLevel(level)) {
    throw new PunctualError('CONFIGURATION', `logLevel: expected one of ${LINE_LEVELS.join(', ')}.`);
  }
  if (!heard.has(stream)) {
    heard.add(stream);
    stream.on?.('error', () => undefined);
  }
  const paint = painterFor(stream, environment);
  const process = { pid: globalThis.process.pid, hostname: hostname() };
  const dropped = new DroppedLines();
  const write = (at: LineLevel, fields: Record<string, unknown>, message: string): void => {
    const entry = { level: levelNumber(at), time: Date.now(), message, fields };
    const line = stream.isTTY ? readableLine(entry, paint) : logLine(entry, process);
    const { count, notice: json } = dropped.take();
    const notice = json && stream.isTTY ? `${readableLine(parseLogLine(json)!, paint)}\n` : json;
    try {
      // Standard error may be a file on a full disk, or a pipe that nobody reads any more.
      stream.write(`${notice}${line}\n`, (error) => {
        if (error) dropped.add(count + 1, error);
      });
    } catch (error) {
      dropped.add(count + 1, error);
    }
  };
  const method = (at: LineLevel): Log['info'] =>
    isWritten(at, level) ? (fields, message) => write(at, fields, message) : () => undefined;
  return { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
}

function isLevel(level: string): level is LineLevel {
  return (LINE_LEVELS as readonly string[]).includes(level);
}
