/** How long parts may take to stop before it is said which of them have not. */
const SLOW_AFTER_MS = 3_000;

/** A part that ends its own work. */
interface Part {
  stop(): Promise<unknown>;
}

/** Stops parts side by side; after a while, tells the names of those that are still busy. */
export async function stopParts(
  parts: Readonly<Record<string, Part>>,
  onSlow: (names: readonly string[]) => void,
): Promise<void> {
  const busy = new Set(Object.keys(parts));
  const slow = setTimeout(() => onSlow([...busy]), SLOW_AFTER_MS);
  try {
    await Promise.all(
      Object.entries(parts).map(async ([name, part]) => {
        await part.stop();
        busy.delete(name);
      }),
    );
  } finally {
    clearTimeout(slow);
  }
}
