/** The fields of a value that a screen has no place for, so that nothing that the API tells is left out; null if there are none. */
export function othersOf<T extends object>(
  value: T,
  known: readonly (keyof T)[],
): Readonly<Record<string, unknown>> | null {
  const names = new Set<string>(known as readonly string[]);
  const others = Object.entries(value).filter(([name, each]) => !names.has(name) && each !== null);
  return others.length === 0 ? null : Object.fromEntries(others);
}
