/** Colours for the terminal, and text that is safe to print on one. */

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

export type Style = keyof typeof CODES;

/** Applies a style to a text, or returns it unchanged where colour is not wanted. */
export type Paint = (style: Style, text: string) => string;

const plain: Paint = (_style, text) => text;
const coloured: Paint = (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m`;

interface Screen {
  readonly isTTY?: boolean | undefined;
}

/** Colour is used on terminals only, unless `NO_COLOR` is set or the terminal is dumb. */
export function painterFor(screen: Screen, environment: Readonly<Record<string, string | undefined>>): Paint {
  const wanted = screen.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';
  return wanted ? coloured : plain;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the purpose.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Text from outside (payloads, log lines, names) on one line without control characters, so that a job cannot move
 * the cursor, set the window's title or forge other lines.
 */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => (character === '\t' || character === '\n' ? ' ' : '\ufffd'));
}
