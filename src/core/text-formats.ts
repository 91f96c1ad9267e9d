import { parseMoment } from './moment.js';

const MAX_ADDRESS_LENGTH = 254;
const MAX_URI_LENGTH = 8_192;

/** The formats of JSON Schema that nodes check. Each takes no longer than the text is long. */
export const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => parseMoment(text) !== null,
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parseMoment(`${text}T00:00:00Z`) !== null,
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  email: isAddress,
  uri: (text) => text.length <= MAX_URI_LENGTH && URL.canParse(text),
};

/** Something, one @, and something with no blanks: whether anybody is there, only a mail can tell. */
function isAddress(text: string): boolean {
  const parts = text.split('@', 3);
  const isWhole = parts.length === 2 && parts.every((part) => part !== '');
  return text.length <= MAX_ADDRESS_LENGTH && isWhole && !/\s/.test(text);
}
