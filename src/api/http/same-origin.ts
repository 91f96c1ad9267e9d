import type { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';

/**
 * Whether a request of a browser comes from a page of this node. Browsers add cookies by themselves, also to requests that
 * pages of other ports of the same host make, so a session alone does not say that its user wanted the request.
 */

/** What only a script of the same origin can add without asking first. */
export const OWN_PAGE_HEADER = 'punctual-dashboard';

const LOOPBACK = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i;

/** Throws CROSS_SITE unless a request comes from a page of this node, or reads and comes from no page at all. */
export function refuseOtherPages(request: FastifyRequest): void {
  const { method, headers } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  const site = headers['sec-fetch-site'];
  if (site !== undefined) {
    if (site !== 'same-origin' && !(isRead && site === 'none')) throw crossSite('comes from another page');
  } else if (!isRead && !isServed(request, headers.origin)) {
    throw crossSite('does not say that it comes from a page of this node');
  }
  if (!isRead && headers[OWN_PAGE_HEADER] !== '1') throw crossSite(`lacks the header ${OWN_PAGE_HEADER}: 1`);
}

/** Whether the browser of a request keeps cookies that are for secure connections only. */
export function isSecure(request: FastifyRequest): boolean {
  const origin = parse(request.headers.origin) ?? servedOrigin(request);
  return origin !== null && (origin.protocol === 'https:' || LOOPBACK.test(origin.hostname));
}

/** A proxy may end TLS in front of the node, so a page of the same host over TLS is one of ours, too. */
function isServed(request: FastifyRequest, origin: string | undefined): boolean {
  const [from, served] = [parse(origin), servedOrigin(request)];
  if (from === null || served === null) return false;
  return from.origin === served.origin || (from.protocol === 'https:' && from.host === hostOf(request));
}

/** The address by which a client reaches this node; null if the header `host` is none. */
export function servedOrigin(request: FastifyRequest): URL | null {
  const isTls = (request.raw.socket as Partial<TLSSocket>).encrypted === true;
  return parse(`${isTls ? 'https' : 'http'}://${hostOf(request)}`);
}

function hostOf({ headers }: FastifyRequest): string {
  return (headers.host ?? '').toLowerCase();
}

function parse(text: string | undefined): URL | null {
  return text !== undefined && URL.canParse(text) ? new URL(text) : null;
}

function crossSite(why: string): PunctualError {
  return new PunctualError('CROSS_SITE', `The request uses a session of the dashboard and ${why}.`);
}
