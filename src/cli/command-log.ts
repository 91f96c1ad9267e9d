import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import { messageOf, PunctualError } from '../core/errors.js';
import type { OutputStream } from './cli.js';
import { type Paint, printable, type Style } from './paint.js';

const LEVELS: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info', 'cyan'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
};
const LEVEL_NAMES = [...Object.values(LEVELS).map(([name]) => name), 'silent'];

/** Lines of this level or higher are shown to the user of `punctual up`. */
export const WARNING_LEVEL = 40;

/** One line of a structured log. */
interface LogEntry {
  readonly level: number;
  readonly time: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Parses a line of a structured log; null for other lines, such as stack traces of Node. */
export function parseLogLine(line: string): LogEntry | null {
  if (!line.startsWith('{')) return null;
  try {
    const { level, time, msg, pid: _pid, hostname: _hostname, ...fields } = JSON.parse(line);
    if (typeof level !== 'number') return null;
    return { level, time: new Date(time).getTime(), message: String(msg ?? ''), fields };
  } catch {
    return null;
  }
}

function fieldText(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'message' in value) return String(value.message);
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** A log line as text: time of day, level, message, other fields. */
function renderLogEntry(entry: LogEntry, paint: Paint): string {
  const [name, style] = LEVELS[entry.level] ?? ['info', 'cyan'];
  const time = Number.isNaN(entry.time) ? '' : new Date(entry.time).toISOString().slice(11, 23);
  const fields = Object.entries(entry.fields)
    .map(([key, value]) => `${key}=${fieldText(value)}`)
    .join(' ');
  const parts = [paint('dim', time), paint(style, name.padEnd(5)), printable(entry.message)];
  if (fields) parts.push(paint('dim', printable(fields)));
  return parts.join(' ');
}

/** Counts the lines of a log that could not be written, e.g. because a disk was full, for a notice when that works again. */
class DroppedLines {
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

/** The log of a long-running command: readable lines on a terminal, one JSON document per line elsewhere. */
export function openLog(stream: OutputStream, level: string, paint: Paint): Logger {
  if (!LEVEL_NAMES.includes(level)) {
    throw new PunctualError('CONFIGURATION', `logLevel: expected one of ${LEVEL_NAMES.join(', ')}.`);
  }
  const dropped = new DroppedLines();
  const write = (line: string): void => {
    const entry = stream.isTTY ? parseLogLine(line) : null;
    const { count, notice } = dropped.take();
    // Standard error may be a file on a full disk; that must not end the program.
    stream.write(notice + (entry ? `${renderLogEntry(entry, paint)}\n` : line), (error) => {
      if (error) dropped.add(count + 1, error);
    });
  };
  return pino({ level, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

/**
 * A log file of limited size. A file that is full, or that is left from the previous start, is renamed to `.1`, which
 * replaces the older one. On a full disk lines are dropped, and the log tells how many once it can be written again.
 */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null when the next file could not be opened. */
  #descriptor: number | null;
  #bytes = 0;
  /** Whether the last line was written only in part. */
  #torn = false;
  readonly #dropped = new DroppedLines();

  constructor(path: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = this.#openNext();
  }

  /** Appends one line; never throws. */
  write(line: string): void {
    const { count, notice } = this.#dropped.take();
    try {
      this.#append(Buffer.from(`${this.#torn ? '\n' : ''}${notice}${line}\n`));
    } catch (error) {
      this.#dropped.add(count + 1, error);
    }
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
  }

  #append(bytes: Buffer): void {
    if (this.#descriptor === null || (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes)) {
      this.close();
      this.#descriptor = null;
      this.#descriptor = this.#openNext();
    }
    // Before a disk is full it may take part of a line.
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#torn = written < bytes.length;
    }
    this.#bytes += bytes.length;
  }

  #openNext(): number {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
    this.#torn = false;
    return openSync(this.path, 'w', 0o600);
  }
}

/** Suppresses messages that repeat within a time window, so that a log stays readable while something keeps failing. */
export class RepeatFilter {
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #seenAt = new Map<string, number>();

  constructor(windowMs: number, now: () => number) {
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Whether the message did not occur within the window. */
  isNew(message: string): boolean {
    const now = this.#now();
    for (const [seen, at] of this.#seenAt) if (now - at >= this.#windowMs) this.#seenAt.delete(seen);
    if (this.#seenAt.has(message)) return false;
    this.#seenAt.set(message, now);
    return true;
  }
}
