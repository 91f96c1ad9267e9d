/** A number of JSON that JavaScript would change, such as the id of a system with 64 bits. */
export class ExactNumber {
  constructor(readonly text: string) {}

  toJSON(): unknown {
    // Where browsers know raw JSON it stays exact; else it is as near as numbers come.
    const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
    return rawJSON ? rawJSON(this.text) : Number(this.text);
  }
}

/** Reads JSON and keeps numbers as they are written where that makes a difference. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, function keep(
    _name: string,
    value: unknown,
    context?: { readonly source?: string },
  ) {
    const source = context?.source;
    if (typeof value !== 'number' || source === undefined || isSame(source, value)) return value;
    return new ExactNumber(source);
  } as (name: string, value: unknown) => unknown);
}

/** Whether a number means what was written: `1.0` and `1e3` do. */
function isSame(source: string, value: number): boolean {
  if (source === String(value)) return true;
  return Number.isFinite(value) && source.replace(/\D/g, '').length <= 15;
}
