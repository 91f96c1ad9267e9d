import { signal } from '@preact/signals';

const visible = signal(document.visibilityState === 'visible');

document.addEventListener('visibilitychange', () => {
  visible.value = document.visibilityState === 'visible';
});

/** Whether somebody can see the page. */
export const isVisible = visible;

/** Resolves when somebody can see the page. */
export function whenVisible(): Promise<void> {
  if (visible.value) return Promise.resolve();
  return new Promise((resolve) => {
    const stop = visible.subscribe((now) => {
      if (!now) return;
      resolve();
      // The first call comes before `stop` is there, but then the page is hidden.
      queueMicrotask(() => stop());
    });
  });
}
