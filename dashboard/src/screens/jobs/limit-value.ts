import { bytesText } from '../../parts/bytes-text.js';
import { countText } from '../../parts/duration-text.js';

const IN_BYTES = ['memory', 'output', 'disk'];

/** The value of a limit of programs, in the unit of its name. */
export function limitValue(name: string, value: number | string): string {
  if (typeof value === 'string') return value;
  return IN_BYTES.includes(name) ? bytesText(value) : countText(value);
}
