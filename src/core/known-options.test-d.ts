import type { OptionNames } from './known-options.js';

/** Compiles only while a list of options must have exactly the names of its type. */

interface Options {
  readonly one?: string;
  readonly two: number;
}

export const exact: OptionNames<Options> = { one: true, two: true };

// @ts-expect-error: an option is missing, even though it may be left out of the options.
export const tooFew: OptionNames<Options> = { two: true };

// @ts-expect-error: there is no such option.
export const tooMany: OptionNames<Options> = { one: true, two: true, three: true };

/** Of a union, those of every part. */
type Either = { readonly all: true } | { readonly ids: readonly string[]; readonly all?: never };

export const ofUnion: OptionNames<Either> = { all: true, ids: true };

// @ts-expect-error: only one part has it, and it is missing.
export const tooFewOfUnion: OptionNames<Either> = { all: true };
