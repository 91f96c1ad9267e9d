/** How many columns of a terminal a text takes, and shortening a text to a number of columns. */

const PLAIN = /^[\u0020-\u007e]*$/;

/** Characters that take two columns: East Asian wide and full-width forms, and emoji that are pictures by default. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u;

/** What takes no column of its own: combining marks, joiners and other invisible characters. */
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

function characters(text: string): string[] {
  if (PLAIN.test(text)) return text.split('');
  return Array.from(graphemes.segment(text), ({ segment }) => segment);
}

function characterWidth(character: string): number {
  if (character.length === 1 && PLAIN.test(character)) return 1;
  if (WIDE.test(character)) return 2;
  return INVISIBLE.test(character) ? 0 : 1;
}

/** The number of columns that a text takes on a terminal. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return characters(text).reduce((sum, character) => sum + characterWidth(character), 0);
}

const ELLIPSIS = '…';

/** As many of the characters as fit into the columns. */
function fitting(characters: readonly string[], columns: number): number {
  let used = 0;
  let count = 0;
  for (const character of characters) {
    used += characterWidth(character);
    if (used > columns) break;
    count += 1;
  }
  return count;
}

/** Cuts the end of a text that is wider than that, with an ellipsis. */
export function truncate(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  if (columns <= 0) return '';
  const all = characters(text);
  return all.slice(0, fitting(all, columns - 1)).join('') + ELLIPSIS;
}

/** Leaves out the middle of a text that is wider than that: names often differ only at their ends. */
export function shortenMiddle(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  if (columns <= 0) return '';
  const all = characters(text);
  const tailColumns = Math.floor((columns - 1) / 2);
  const head = all.slice(0, fitting(all, columns - 1 - tailColumns));
  const tail = fitting([...all].reverse(), tailColumns);
  return head.join('') + ELLIPSIS + (tail === 0 ? '' : all.slice(-tail).join(''));
}
