import { useEffect, useState } from 'preact/hooks';

/** An expression in words, as far as there are words for it; what puts it into words comes with the first that is shown. */
export function useExpressionWords(cron: string | undefined): string | null {
  const [words, setWords] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    setWords(null);
    if (cron === undefined || isOpenToDoubt(cron)) return;
    void import('cronstrue').then(({ default: cronstrue }) => {
      if (!isOver) setWords(wordsOf(cron, (text) => cronstrue.toString(text, { use24HourTimeFormat: true })));
    });
    return () => {
      isOver = true;
    };
  }, [cron]);
  return words;
}

function wordsOf(cron: string, toWords: (cron: string) => string): string | null {
  try {
    return toWords(cron);
  } catch {
    // The next occurrences stand beside it and say what it means.
    return null;
  }
}

/** A day of the month and a day of the week together mean either of them, which the words would give as both. */
function isOpenToDoubt(cron: string): boolean {
  const fields = cron.trim().split(/\s+/);
  const [, , day, , weekday] = fields.length === 6 ? fields.slice(1) : fields;
  const isAny = (field: string | undefined) => field === undefined || field === '*' || field === '?';
  return !isAny(day) && !isAny(weekday);
}
