/** JSON whose numbers stay as they are written, in every browser: only the newest ones can tell what a number was written as. */

/** A number of JSON that JavaScript would change, such as the id of a system with 64 bits. */
export class ExactNumber {
  constructor(readonly text: string) {}

  /** For whoever does not write exactly; see `writeExactly`. */
  toJSON(): number {
    return Number(this.text);
  }
}

/** A text or a number; whatever stands in a text is none. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Reads JSON and keeps numbers as they are written where that makes a difference. */
export function parseExactly(text: string): unknown {
  const mark = newMark();
  let isChanged = false;
  const marked = text.replace(TOKEN, (token) => {
    if (token.startsWith('"') || isSame(token, Number(token))) return token;
    isChanged = true;
    return `"${mark}${token}"`;
  });
  const plain: unknown = JSON.parse(text);
  if (!isChanged) return plain;
  return JSON.parse(marked, (_name, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value,
  );
}

/** Writes JSON with the numbers as they were read. */
export function writeExactly(value: unknown, indent?: number): string | undefined {
  const mark = newMark();
  const text = JSON.stringify(
    value,
    function keep(this: Record<string, unknown>, name: string, written: unknown) {
      const read = this[name];
      return read instanceof ExactNumber ? mark + read.text : written;
    },
    indent,
  ) as string | undefined;
  return text?.replaceAll(new RegExp(`"${mark}([^"]*)"`, 'g'), '$1');
}

/** What stands before numbers that are kept in texts. Nobody can guess it, so no text of a payload passes for a number. */
function newMark(): string {
  return `${String(Math.random()).slice(2)}${String(Math.random()).slice(2)}:`;
}

/** Whether a number means what was written: `1.0` and `1e3` do. */
function isSame(source: string, value: number): boolean {
  if (source === String(value)) return true;
  // What is too small becomes zero, and zero loses its sign.
  if (value === 0) return /^0(\.0+)?$/.test(source);
  return Number.isFinite(value) && source.replace(/\D/g, '').length <= 15;
}
