import { effect, signal } from '@preact/signals';

/** Light or dark: as the system has it, unless somebody chooses. */

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const NAME = 'punctual-theme';

function read(): Theme {
  const stored = localStorage.getItem(NAME);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

export const theme = signal<Theme>(read());

const systemDark = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener('change', () => {
  systemIsDark.value = systemDark.matches;
});

/** Which of the two is shown; what draws on a canvas reads its colours again when it changes. */
export function shownTheme(): 'light' | 'dark' {
  if (theme.value !== 'system') return theme.value;
  return systemIsDark.value ? 'dark' : 'light';
}

/** Has the page follow the choice. */
export function applyTheme(): void {
  effect(() => {
    if (theme.value === 'system') {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem(NAME);
    } else {
      document.documentElement.dataset.theme = theme.value;
      localStorage.setItem(NAME, theme.value);
    }
  });
}
