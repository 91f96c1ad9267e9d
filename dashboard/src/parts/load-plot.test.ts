import { expect, it } from 'vitest';
import { checkedLanguage } from './load-plot.js';

it('a language stays as it is, and what Intl does not take becomes that of the page', () => {
  for (const language of ['en', 'en-US', 'de', 'zh-Hant-TW'])
    expect(checkedLanguage(language)).toBe(language);
  for (const language of ['en-US@posix', 'C', 'de_DE.UTF-8', '']) {
    expect(checkedLanguage(language)).toBe('en');
    expect(() => new Intl.NumberFormat(checkedLanguage(language))).not.toThrow();
  }
});
