/** Bodies of the largest kinds that are allowed, as text: parsing them is the cluster's work, not the attack's. */

const KIB = 1024;
/** Just below the bound of a payload or result. */
export const LARGE_BYTES = 255 * KIB;
/** Just below the bound of a bulk or report. */
export const BULK_BYTES = 15.5 * KIB * KIB;
/** As many of the largest payloads as fit into a bulk. */
export const LARGE_PER_BULK = Math.floor(BULK_BYTES / (LARGE_BYTES + 200));

/** A JSON text of one long string. */
export const LONG_STRING = `"${'x'.repeat(LARGE_BYTES)}"`;
/** A JSON text of as many small objects as fit: little to read, much to build. */
export const SMALL_OBJECTS = `[${Array.from({ length: Math.floor(LARGE_BYTES / 3) }, () => '{}').join(',')}]`;

/** The text of a bulk of so many jobs; `job` gives the fields of each, without braces. */
export function bulk(count: number, job: (n: number) => string): string {
  return `{"jobs":[${Array.from({ length: count }, (_, n) => `{${job(n)}}`).join(',')}]}`;
}

/** The text of an object with so many fields that nobody knows. */
export function manyFields(count: number): string {
  return `{${Array.from({ length: count }, (_, n) => `"f${n}":1`).join(',')}}`;
}
