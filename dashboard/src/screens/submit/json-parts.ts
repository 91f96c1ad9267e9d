import { jsonMistake } from '../jobs/json-text.js';

/** JSON as text, so that the numbers of payloads keep their digits. */
export type Parts = readonly (readonly [name: string, json: string])[];

const text = JSON.stringify;

/** An object of these parts. */
export function objectOf(parts: Parts): string {
  return `{${parts.map(([name, json]) => `${text(name)}:${json}`).join(',')}}`;
}

/** The part with this name if there is anything in it. */
export function part(name: string, value: string, json = text(value)): Parts {
  return value.trim() === '' ? [] : [[name, json]];
}

/** An object as a part, if there is anything in it. */
export function nested(name: string, parts: Parts): Parts {
  return parts.length === 0 ? [] : [[name, objectOf(parts)]];
}

/** Lines of a name and a value; a value that is an object of JSON refers to a secret. */
export function linesOf(lines: string, sign: ':' | '='): Parts {
  return lines
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const at = line.indexOf(sign);
      const [name, value] = at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      const isSecret = value.startsWith('{"$secret"') && jsonMistake(value) === null;
      return [name, isSecret ? value : text(value)] as const;
    });
}
