import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** What the screen that is shown puts into the command palette. */

/** An entry of the palette. */
export interface Command {
  readonly title: string;
  /** What it is, on the right. */
  readonly kind?: string;
  readonly run: () => void;
}

const ofScreens = signal<readonly (readonly Command[])[]>([]);

/** The commands of everything that is shown. */
export function screenCommands(): readonly Command[] {
  return ofScreens.value.flat();
}

/** Puts commands into the palette while the caller is shown. The list must be the same object as long as nothing changes. */
export function useCommands(commands: readonly Command[]): void {
  useEffect(() => {
    ofScreens.value = [...ofScreens.peek(), commands];
    return () => {
      ofScreens.value = ofScreens.peek().filter((each) => each !== commands);
    };
  }, [commands]);
}
