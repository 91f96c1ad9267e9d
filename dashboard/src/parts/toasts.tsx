import { signal } from '@preact/signals';
import { whenOthersAreShown } from '../api/client.js';
import { Icon } from './icon.js';

/** Short news about what somebody has just done, with a way to undo it where there is one. */

/** What a toast says. */
export interface Toast {
  readonly kind: 'good' | 'bad' | 'plain';
  readonly text: string;
  /** Takes back what was done. */
  readonly undo?: () => void | Promise<void>;
}

interface Shown extends Toast {
  readonly id: number;
}

const SHOWN_MS = 6_000;
/** Undoing takes reading and deciding; so does a failure. */
const SHOWN_LONG_MS = 15_000;
const MOST = 4;

const shown = signal<readonly Shown[]>([]);
let lastId = 0;

// What is taken back would be taken back with the rights and for the tenant of now.
whenOthersAreShown(() => {
  shown.value = [];
});

/** Shows a toast for a while. */
export function toast(what: Toast): void {
  lastId += 1;
  const id = lastId;
  shown.value = [...shown.value, { ...what, id }].slice(-MOST);
  setTimeout(() => dismiss(id), what.undo || what.kind === 'bad' ? SHOWN_LONG_MS : SHOWN_MS);
}

function dismiss(id: number): void {
  shown.value = shown.value.filter((each) => each.id !== id);
}

/** Where toasts appear. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((each) => (
        <ToastView key={each.id} toast={each} />
      ))}
    </div>
  );
}

function ToastView({ toast: { id, kind, text, undo } }: { readonly toast: Shown }) {
  const takeBack = () => {
    dismiss(id);
    void undo!();
  };
  return (
    <div class={`toast toast-${kind}`}>
      <span>{text}</span>
      {undo && (
        <button type="button" class="button button-small" onClick={takeBack}>
          Undo
        </button>
      )}
      <button type="button" class="button button-icon" aria-label="Dismiss" onClick={() => dismiss(id)}>
        <Icon name="close" />
      </button>
    </div>
  );
}
