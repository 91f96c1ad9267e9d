import { invalid, type PunctualError, pointerStep } from './errors.js';
import { nearestName } from './nearest-name.js';

/**
 * Refusing options that do not exist. The compiler does so for programs in TypeScript; in others, a misspelt option would
 * be ignored, and the program would do something else than was meant.
 */

/** The names of all options of a type: a list of this type that lacks one, or has one too many, does not compile. */
export type OptionNames<Options> = Readonly<
  Record<Options extends unknown ? Extract<keyof Options, string> : never, true>
>;

/**
 * Throws INVALID_REQUEST if there is an option that the function does not have. Makes no objects if all is well. `within`
 * is the pointer to options that are part of others.
 */
export function checkOptions(
  of: string,
  options: object | null | undefined,
  known: Readonly<Record<string, true>>,
  within = '',
): void {
  if (options === null || options === undefined) return;
  for (const name in options) {
    // Inherited properties are those of a class or of every object, which nobody gave as an option.
    if (!Object.hasOwn(known, name) && Object.hasOwn(options, name))
      throw unknownOption(of, within, name, known);
  }
}

function unknownOption(
  of: string,
  within: string,
  name: string,
  known: Readonly<Record<string, true>>,
): PunctualError {
  const names = Object.keys(known);
  const nearest = nearestName(name, names);
  const advice = nearest === undefined ? `It has ${names.join(', ')}.` : `Did you mean ${nearest}?`;
  return invalid([
    { pointer: `${within}${pointerStep(name)}`, detail: `${of} has no such option. ${advice}` },
  ]);
}
