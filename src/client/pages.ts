import type { OptionNames } from '../core/known-options.js';
import type { Page } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';

/** Options of reading a list. */
export interface PageOptions {
  /** How many items one request reads, from 1 to 1000; default 100. */
  readonly pageSize?: number;
  /** Ends the iteration with its reason. */
  readonly signal?: AbortSignal;
}

export const PAGE_OPTIONS: OptionNames<PageOptions> = { pageSize: true, signal: true };

/** A part of a query: what is undefined is left out. */
export type Query = Readonly<Record<string, string | undefined>>;

/** Iterates over all items of a list; each page is read when the items before it were used up. */
export async function* eachItem<T>(
  transport: Transport,
  path: string,
  query: Query,
  { pageSize, signal }: PageOptions,
): AsyncGenerator<T, void, undefined> {
  let after: string | undefined;
  do {
    signal?.throwIfAborted();
    const limit = pageSize === undefined ? undefined : String(pageSize);
    const page: Page<T> = await transport.request('GET', path + queryText({ ...query, limit, after }), {
      ...(signal && { signal }),
    });
    yield* page.data;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** The query as a part of a URL, empty when nothing is given. */
export function queryText(query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
