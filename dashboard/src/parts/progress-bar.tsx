import { countText } from './duration-text.js';

interface ProgressBarProps {
  readonly label: string;
  readonly done: number;
  /** Null while it is not known. */
  readonly total: number | null;
}

/** How far long work has come. */
export function ProgressBar({ label, done, total }: ProgressBarProps) {
  const words = total === null ? countText(done) : `${countText(done)} of ${countText(total)}`;
  return (
    <div class="progress">
      <div class="progress-words">
        <span>{label}</span>
        <span class="figure">{words}</span>
      </div>
      <progress aria-label={label} {...(total !== null && { value: done, max: Math.max(1, total) })} />
    </div>
  );
}
