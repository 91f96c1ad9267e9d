/**
 * Regular expressions that tenants write. The engine backtracks, and what it can take is exponential in general: `(a+)+$`.
 * Without groups, alternatives and references an expression is a row of single characters with numbers of repetitions,
 * and the ways to match it are at most the product of those numbers. So the cost of a match is known before it is tried.
 */

/** One character: an escaped one, a class of them, any, or itself. */
const CHARACTER =
  /\\[dDwWsS]|\\p\{[A-Za-z_=]{1,40}\}|\\[.\-/\\^$*+?()[\]{}|]|\[\^?(?:\\.|[^\]\\])+\]|[^\\[\](){}|*+?^$/]/uy;
const REPETITION = /[*+?]|\{(\d{1,4})(,(\d{0,4}))?\}/y;
const MAX_LENGTH = 1_024;

/** How often a character may come. */
interface Repeated {
  readonly least: number;
  readonly most: number;
}

const ONCE: Repeated = { least: 1, most: 1 };

/** A regular expression whose cost is known. */
export class SafePattern {
  private constructor(
    private readonly expression: RegExp,
    private readonly characters: readonly Repeated[],
    private readonly isAnchored: boolean,
  ) {}

  /** Null for an expression that is none, or whose cost is not known. */
  static read(source: string): SafePattern | null {
    if (source.length > MAX_LENGTH) return null;
    const isAnchored = source.startsWith('^');
    const characters = readCharacters(source, isAnchored ? 1 : 0, source.length - (endsOpen(source) ? 0 : 1));
    if (characters === null) return null;
    try {
      return new SafePattern(new RegExp(source, 'u'), characters, isAnchored);
    } catch {
      return null;
    }
  }

  /** The most comparisons that a match of a text of this length takes. */
  cost(length: number): number {
    let ways = this.isAnchored ? 1 : length + 1;
    let steps = 1;
    for (const { least, most } of this.characters) {
      ways *= Math.min(most, length) - Math.min(least, length) + 1;
      steps += Math.min(most, length);
    }
    return ways * steps;
  }

  test(text: string): boolean {
    return this.expression.test(text);
  }
}

/** Whether the expression does not end with the end of the text. */
function endsOpen(source: string): boolean {
  return !source.endsWith('$') || source.endsWith('\\$');
}

function readCharacters(source: string, from: number, to: number): readonly Repeated[] | null {
  const characters: Repeated[] = [];
  for (let at = from; at < to; ) {
    const character = matchAt(CHARACTER, source, at);
    if (!character) return null;
    at += character[0].length;
    const repetition = at < to ? matchAt(REPETITION, source, at) : null;
    characters.push(repetition ? repeatedBy(repetition) : ONCE);
    at += repetition?.[0].length ?? 0;
    if (at > to) return null;
  }
  return characters;
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

function repeatedBy([text, least, range, most]: RegExpExecArray): Repeated {
  if (text === '?') return { least: 0, most: 1 };
  if (text === '*') return { least: 0, most: Number.POSITIVE_INFINITY };
  if (text === '+') return { least: 1, most: Number.POSITIVE_INFINITY };
  if (range === undefined) return { least: Number(least), most: Number(least) };
  return { least: Number(least), most: most === '' ? Number.POSITIVE_INFINITY : Number(most) };
}
