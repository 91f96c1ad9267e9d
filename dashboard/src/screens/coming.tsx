import { EmptyState } from '../parts/empty-state.js';
import { ScreenTop } from '../parts/panel.js';

interface ComingProps {
  readonly title: string;
  /** What the screen will show. */
  readonly words: string;
  /** What shows it until then. */
  readonly command: string;
}

/** A screen that is not there yet. */
export function Coming({ title, words, command }: ComingProps) {
  return (
    <>
      <ScreenTop title={title} />
      <EmptyState title="This screen is being built" command={command}>
        <p>{words}</p>
      </EmptyState>
    </>
  );
}
