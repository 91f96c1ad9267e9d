/** Options of a request that may be sent again. */
export interface RepeatableRequest {
  /**
   * Makes the request safe to repeat: within 24 hours the same request with the same key takes effect once, and is
   * answered as it was the first time. Use a new key, such as a UUID, for each new request.
   */
  readonly idempotencyKey?: string;
}

/** Headers of a request. */
export type Headers = Readonly<Record<string, string>>;

/**
 * How a request with a key is sent; `part` counts the requests that a submission was divided into, each of which has a
 * key of its own. Without a key nothing is said about repeating it.
 */
export function repeatableWith(
  key: string | undefined,
  headers: Headers | undefined,
  part = 0,
): { readonly headers: Headers; readonly retry?: true } | undefined {
  if (key === undefined) return headers && { headers };
  const own = part === 0 ? key : `${key}/${part + 1}`;
  return { headers: { ...headers, 'idempotency-key': own }, retry: true };
}
