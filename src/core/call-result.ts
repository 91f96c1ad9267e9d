/** The result of a call, as it is kept. */
export interface CallResult {
  readonly status: number;
  /** Those of `content-type`, `etag`, `location` and `x-request-id` that the answer had. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON as JSON, text as text; null if there is none, or none that can be kept. */
  readonly body: unknown;
  /** Set if the body is the beginning of a longer text. */
  readonly cut?: true;
  /** What is not kept: neither JSON nor text, or encoded. `bytes` is null if the answer did not say. */
  readonly omitted?: { readonly type: string; readonly bytes: number | null };
}
