import type { Page } from '../core/wire.js';
import type { RequestOptions, Transport } from '../transport/transport.js';

const LARGEST_PAGE = 1_000;

/** Which part of a list to read; without a limit all of it. */
export interface Listing {
  readonly query?: Readonly<Record<string, string>>;
  readonly limit?: number;
}

/**
 * Reads a list page after page. A page may hold fewer items than were asked for, because they are large; `next` alone says
 * whether there are more.
 */
export async function readPages<T>(
  api: Transport,
  path: string,
  request: RequestOptions,
  { query = {}, limit = Number.POSITIVE_INFINITY }: Listing = {},
): Promise<Page<T>> {
  const data: T[] = [];
  let next: string | null = null;
  do {
    const size = Math.min(LARGEST_PAGE, limit - data.length);
    const asked = new URLSearchParams({
      limit: String(size),
      ...query,
      ...(next !== null && { after: next }),
    });
    const page: Page<T> = await api.request('GET', `${path}?${asked}`, request);
    for (const item of page.data) data.push(item);
    next = page.next;
  } while (next !== null && data.length < limit);
  return { data, next };
}
