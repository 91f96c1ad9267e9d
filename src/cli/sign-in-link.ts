import type { SignInCode } from '../core/session.js';
import type { Transport } from '../transport/transport.js';

/** A link that opens the dashboard and signs in once. */
export interface SignInLink {
  readonly url: string;
  readonly expiresAt: string;
}

/**
 * Makes a link to the dashboard of a node. The code is in the fragment, which browsers send to nobody, so it is in no log of a
 * server or a proxy.
 */
export async function makeSignInLink(
  api: Transport,
  nodeUrl: string,
  signal?: AbortSignal,
): Promise<SignInLink> {
  const { code, expiresAt } = await api.request<SignInCode>('POST', '/v1/session/codes', {
    ...(signal && { signal }),
  });
  return { url: `${nodeUrl.replace(/\/+$/, '')}/#code=${code}`, expiresAt };
}
