import { messageOf } from '../core/errors.js';

/** The most causes of one error that are reported. */
const MAX_CAUSES = 5;
/** The most errors of an AggregateError that are reported. */
const MAX_OF_AGGREGATE = 3;

/** One error of a chain: its code, and its stack or, for want of one, its message. */
interface Link {
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

/** An error with its causes, nearest first. */
export interface ErrorChain {
  /** The first code in the chain: `fetch` and others throw errors whose code only a cause has. */
  readonly code: string | undefined;
  /** The stack of the error, and those of its causes. */
  readonly stacks: readonly string[];
}

/** The chain of errors that a thrown value starts. It may be a circle, and getters of a cause may throw. */
export function chainOf(thrown: unknown): ErrorChain {
  const outer = linkOf(thrown);
  const links = [outer, ...causesOf(thrown)];
  return {
    code: links.find(({ code }) => code !== undefined)?.code,
    stacks: links.flatMap(({ stack }, i) =>
      stack === undefined ? [] : i === 0 ? stack : `Caused by: ${stack}`,
    ),
  };
}

function causesOf(thrown: unknown): Link[] {
  const seen = new Set([thrown]);
  const links: Link[] = [];
  // A Set is iterated in the order of insertion, and what is added meanwhile is visited too.
  for (const each of seen) {
    try {
      if (each !== thrown) links.push(causeLinkOf(each));
      if (links.length === MAX_CAUSES) break;
      for (const next of directCausesOf(each)) seen.add(next);
    } catch {
      // The rest of the chain is worth reporting without an error that cannot be read.
    }
  }
  return links;
}

function directCausesOf(thrown: unknown): unknown[] {
  const { cause, errors } = propertiesOf(thrown);
  const several = thrown instanceof AggregateError && Array.isArray(errors) ? errors : [];
  return [cause, ...several.slice(0, MAX_OF_AGGREGATE)].filter((each) => each !== undefined && each !== null);
}

function causeLinkOf(cause: unknown): Link {
  const { code, stack } = linkOf(cause);
  return { code, stack: stack ?? messageOf(cause) };
}

function linkOf(thrown: unknown): Link {
  const { code, stack } = propertiesOf(thrown);
  return {
    code: typeof code === 'string' ? code : undefined,
    stack: typeof stack === 'string' ? stack : undefined,
  };
}

function propertiesOf(thrown: unknown): {
  code?: unknown;
  stack?: unknown;
  cause?: unknown;
  errors?: unknown;
} {
  return typeof thrown === 'object' && thrown !== null ? thrown : {};
}
