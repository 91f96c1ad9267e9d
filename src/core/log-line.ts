import { type Paint, printable, type Style } from './paint.js';

/** The lines of a log: one JSON document each, in the form of pino, and the same as text for a terminal. */

const LEVELS = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
  silent: Number.POSITIVE_INFINITY,
} as const;

/** The levels that a log can be set to; `silent` logs nothing. */
export type LineLevel = keyof typeof LEVELS;
export const LINE_LEVELS = Object.keys(LEVELS) as LineLevel[];

/** Whether lines of a level are written when a log is set to `threshold`. */
export function isWritten(level: LineLevel, threshold: LineLevel): boolean {
  return LEVELS[level] >= LEVELS[threshold];
}

const STYLES: Readonly<Record<number, readonly [name: LineLevel, style: Style]>> = {
  [LEVELS.trace]: ['trace', 'dim'],
  [LEVELS.debug]: ['debug', 'dim'],
  [LEVELS.info]: ['info', 'cyan'],
  [LEVELS.warn]: ['warn', 'yellow'],
  [LEVELS.error]: ['error', 'red'],
  [LEVELS.fatal]: ['fatal', 'red'],
};

/** Lines of this level or higher are shown to the user of `punctual up`. */
export const WARNING_LEVEL = LEVELS.warn;

/** One line of a structured log. */
export interface LogEntry {
  readonly level: number;
  /** In milliseconds since 1970; NaN if the line has no time. */
  readonly time: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The number of a level. */
export function levelNumber(level: LineLevel): number {
  return LEVELS[level];
}

/** A line of the log as JSON. Fields that cannot be written as JSON are left out, with a word about it. */
export function logLine(entry: LogEntry, process: { pid: number; hostname: string }): string {
  const { level, time, message, fields } = entry;
  const head = { level, time: new Date(time).toISOString(), ...process };
  try {
    return JSON.stringify({ ...head, ...fields, msg: message }, withErrors);
  } catch {
    return JSON.stringify({ ...head, unreadable: Object.keys(fields).join(','), msg: message });
  }
}

/** `JSON.stringify` makes empty objects of errors. */
function withErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message, stack, code } = value as Error & { readonly code?: unknown };
  return { type: name, message, stack, ...(typeof code === 'string' && { code }) };
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

/** Fields as text: `job=1 error=no luck`. Lists and objects are JSON; of an error only the message is shown. */
export function fieldsText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}=${fieldText(value)}`)
    .join(' ');
}

function fieldText(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'message' in value) return String(value.message);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  } catch {
    return '?';
  }
}

/** A line of the log as text: time of day, level, message, other fields, and below them the lines of a stack. */
export function readableLine(entry: LogEntry, paint: Paint): string {
  const { stack, ...rest } = entry.fields;
  const [name, style] = STYLES[entry.level] ?? ['info', 'cyan'];
  const time = Number.isNaN(entry.time) ? '' : new Date(entry.time).toISOString().slice(11, 23);
  const parts = [paint('dim', time), paint(style, name.padEnd(5)), printable(entry.message)];
  const fields = fieldsText(rest);
  if (fields) parts.push(paint('dim', printable(fields)));
  const line = parts.join(' ');
  return typeof stack === 'string' ? `${line}\n${paint('dim', indented(stack))}` : line;
}

/** A text of several lines, such as a stack, indented and safe to print. */
export function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `    ${printable(line.trim())}`)
    .join('\n');
}
