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

/** The level from which on the person at the terminal should know. */
export const WARNING_LEVEL = 40;

interface LogEntry {
  readonly level: number;
  readonly time: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Reads one structured log line; null when it is something else, such as a stack trace of the runtime. */
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

/** One log line for people: time of day, level, message, then what else is known. */
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

/** Lines of a log that could not be written, above all because a disk is full: counted, and told of when it works again. */
class DroppedLines {
  #count = 0;
  #why = '';

  add(count: number, error: unknown): void {
    this.#count += count;
    this.#why = messageOf(error);
  }

  /** How many there are, and a line that says so to be written first; whoever cannot write it adds them again. */
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
    const told = dropped.take();
    // Standard error may be a file on a disk that is full, which must not be the end of what is logged about.
    stream.write(told.notice + (entry ? `${renderLogEntry(entry, paint)}\n` : line), (error) => {
      if (error) dropped.add(told.count + 1, error);
    });
  };
  return pino({ level, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

/**
 * A log that cannot fill the disk: the one of the previous start, or the first half of a long one, is kept
 * beside it as `.1`, and nothing older. Nor can a disk that others have filled do any harm: what cannot be written is
 * dropped, and the log says how much that was when it can be written again.
 */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null when the next file could not be begun. */
  #descriptor: number | null;
  #bytes = 0;
  /** Whether the last line is there in part only. */
  #torn = false;
  readonly #dropped = new DroppedLines();

  constructor(path: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.path = path;
    this.#maxBytes = maxBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#descriptor = this.#begin();
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
      this.#descriptor = this.#begin();
    }
    // A disk may take a part of a line before it is full.
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#torn = written < bytes.length;
    }
    this.#bytes += bytes.length;
  }

  #begin(): number {
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
    this.#torn = false;
    return openSync(this.path, 'w', 0o600);
  }
}

/** Keeps a log readable while something fails again and again: the same words count once in a while. */
export class Repetition {
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #saidAt = new Map<string, number>();

  constructor(windowMs: number, now: () => number) {
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Whether these words are worth saying: they were not said within the window. */
  isNews(words: string): boolean {
    const now = this.#now();
    for (const [said, at] of this.#saidAt) if (now - at >= this.#windowMs) this.#saidAt.delete(said);
    if (this.#saidAt.has(words)) return false;
    this.#saidAt.set(words, now);
    return true;
  }
}
