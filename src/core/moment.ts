/** Moments as people write them: RFC 3339, such as `2026-12-24T18:00:00Z`. */

const MOMENT = /^\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

/** The last moment that has four digits for its year, and so the last that can be written again. */
const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The length of what `Date.toISOString` writes, such as `2026-12-24T18:00:00.000Z`. */
const ISO_LENGTH = 24;
const [ZERO, NINE] = [0x30, 0x39];
/** The second that was parsed last, up to and with the point before its milliseconds. */
let lastSecond = { text: '?', ms: 0 };

/** Milliseconds of an RFC 3339 moment, or null when it is not one (February 30th is none). */
export function parseMoment(text: string): number | null {
  // Reports bring tens of thousands of moments per second, and nearly all of them fall into the same second.
  if (text.length !== ISO_LENGTH || !text.endsWith('Z')) return parseAnyMoment(text);
  const ms = threeDigits(text, ISO_LENGTH - 4);
  if (ms >= 0 && text.startsWith(lastSecond.text)) return lastSecond.ms + ms;
  const moment = parseAnyMoment(text);
  if (moment !== null && ms >= 0 && text[ISO_LENGTH - 5] === '.') {
    lastSecond = { text: text.slice(0, ISO_LENGTH - 4), ms: moment - ms };
  }
  return moment;
}

/** The number of three digits, or -1 when they are no digits. */
function threeDigits(text: string, at: number): number {
  let number = 0;
  for (let i = at; i < at + 3; i++) {
    const digit = text.charCodeAt(i);
    if (digit < ZERO || digit > NINE) return -1;
    number = number * 10 + digit - ZERO;
  }
  return number;
}

function parseAnyMoment(text: string): number | null {
  if (!MOMENT.test(text)) return null;
  const ms = Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  if (Number.isNaN(ms) || ms > LAST_MOMENT) return null;
  const day = Number(text.slice(8, 10));
  // The calendar repeats after 400 years, and Date.UTC takes the years 0 to 99 for those of the last century.
  const year = 2000 + (Number(text.slice(0, 4)) % 400);
  const lastDay = new Date(Date.UTC(year, Number(text.slice(5, 7)), 0)).getUTCDate();
  return day <= lastDay ? ms : null;
}
