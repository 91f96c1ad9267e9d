import { PunctualError } from '../core/errors.js';

/** The address of a node, parsed; throws CONFIGURATION for what is none. */
export function nodeAddress(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed && /^https?:$/.test(parsed.protocol)) return parsed;
  const detail = `${JSON.stringify(url)} is not the address of a node; expected something like http://127.0.0.1:8080.`;
  throw new PunctualError('CONFIGURATION', detail);
}
