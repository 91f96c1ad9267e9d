import type uPlot from 'uplot';

/**
 * Loads what draws charts. While it is loaded it has `Intl` write numbers in the language of the browser as `navigator` tells it,
 * and fails where that is the locale of a system, such as `en-US@posix`. Then the page has no language but its own.
 */
export async function loadPlot(): Promise<typeof uPlot> {
  const language = checkedLanguage(navigator.language);
  if (language !== navigator.language) Object.defineProperty(navigator, 'language', { value: language });
  return (await import('uplot')).default;
}

/** A language that `Intl` takes: the given one, or else that of the page. */
export function checkedLanguage(language: string): string {
  try {
    return Intl.getCanonicalLocales(language)[0] === undefined ? 'en' : language;
  } catch {
    return 'en';
  }
}
