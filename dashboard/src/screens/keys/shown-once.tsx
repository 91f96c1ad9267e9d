import { Copied } from '../../parts/copied.js';
import { Dialog } from '../../parts/dialog.js';

interface ShownOnceProps {
  readonly title: string;
  /** What it is, for the label of the button that copies it. */
  readonly what: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** A secret that was just made. It is nowhere but in this window, which is why it says so. */
export function ShownOnce({ title, what, secret, onClose }: ShownOnceProps) {
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <p class="dialog-text">Copy it now: it is shown this once, and nobody can read it later.</p>
      <p>
        <Copied text={secret} what={what} />
      </p>
      <div class="dialog-buttons">
        <button type="button" class="button button-main" onClick={onClose}>
          I have it
        </button>
      </div>
    </Dialog>
  );
}
