import { useState } from 'preact/hooks';
import { Icon } from './icon.js';

/** Puts a text on the clipboard; false where the browser does not let pages do so. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

interface CopiedProps {
  readonly text: string;
  /** What it is, for the label of the button; default `command`. */
  readonly what?: string;
}

/** A text that is there to be copied, such as a command, with a button that does so. */
export function Copied({ text, what }: CopiedProps) {
  return (
    <span class="copied">
      <code>{text}</code>
      <CopyText text={text} {...(what !== undefined && { what })} />
    </span>
  );
}

/** The button alone, for a text that stands elsewhere. */
export function CopyText({ text, what = 'command' }: CopiedProps) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="button button-icon" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      {done ? 'Copied' : <Icon name="copy" />}
    </button>
  );
}
