import { writeExactly } from '../../api/exact-json.js';

/** JSON as people write and edit it. */

/** A value as it is edited; numbers that were read exactly are written exactly. */
export function jsonText(value: unknown): string {
  return writeExactly(value, 2) ?? 'null';
}

/** What is wrong with a text that should be JSON; null if nothing is. */
export function jsonMistake(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^JSON\.parse: /, '') : 'it cannot be read';
    return `This is not JSON: ${why}.`;
  }
}
