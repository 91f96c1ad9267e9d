/** Colours of the terminal, and text that is safe to show on one. */

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

export type Style = keyof typeof CODES;

/** Gives a text a style, or leaves it as it is where colour is not wanted. */
export type Paint = (style: Style, text: string) => string;

const plain: Paint = (_style, text) => text;
const coloured: Paint = (style, text) => `\u001b[${CODES[style]}m${text}\u001b[0m`;

interface Screen {
  readonly isTTY?: boolean | undefined;
}

/** Colour is for terminals only, and not even there when `NO_COLOR` is set or the terminal is dumb. */
export function painterFor(screen: Screen, environment: Readonly<Record<string, string | undefined>>): Paint {
  const wanted = screen.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';
  return wanted ? coloured : plain;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the purpose.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Text of others (payloads, log lines, names) on one line without control characters, so that a job cannot
 * move the cursor, retitle the window or fake the lines around it.
 */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => (character === '\t' || character === '\n' ? ' ' : '\ufffd'));
}
