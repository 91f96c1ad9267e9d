import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { whenOthersAreShown } from '../api/client.js';
import { Dialog } from './dialog.js';

/** What somebody is asked before something is done. */
export interface Question {
  readonly title: string;
  readonly text: ComponentChildren;
  /** What the button says that does it. */
  readonly verb: string;
  /** Whether it cannot be taken back. */
  readonly isDangerous?: boolean;
}

interface Asked extends Question {
  readonly answer: (yes: boolean) => void;
}

const asked = signal<Asked | null>(null);

whenOthersAreShown(() => asked.value?.answer(false));

/** Asks, and answers with whether it shall be done. */
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (yes) => {
        asked.value = null;
        resolve(yes);
      },
    };
  });
}

/** Where questions appear. */
export function ConfirmDialog() {
  const question = asked.value;
  if (!question) return null;
  const { title, text, verb, isDangerous = false, answer } = question;
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <div class="dialog-text">{text}</div>
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={() => answer(false)}>
          Keep as it is
        </button>
        <button
          type="button"
          class={isDangerous ? 'button button-bad' : 'button button-main'}
          onClick={() => answer(true)}
        >
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
