import { BlockList, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { FORWARDED } from './forwarding.js';

/**
 * Where requests come from. The other end of a connection cannot lie about its address; everything in the headers can. So a
 * header counts only if somebody trusted wrote it: another node, whose mark is signed, or a proxy that the operator named.
 */

/** Longer chains of proxies do not exist; what is longer was made up. */
const MOST_HOPS = 32;

/** What client addresses are read with. */
interface AddressParts {
  /** Addresses and CIDR ranges, separated by commas. */
  readonly trustedProxies: string;
  /** The address in the mark of another node; undefined if the mark is not genuine. */
  readonly markedAddress: (mark: string) => string | null | undefined;
}

/** How to tell where a request comes from; throws when the setting of the proxies is wrong. */
export function clientAddresses({
  trustedProxies,
  markedAddress,
}: AddressParts): (request: FastifyRequest) => string | null {
  const isTrusted = trusted(trustedProxies);
  return ({ headers, socket }) => {
    const mark = headers[FORWARDED];
    if (typeof mark === 'string') {
      const marked = markedAddress(mark);
      if (marked !== undefined) return marked;
    }
    const peer = plain(socket.remoteAddress);
    const forwarded = headers['x-forwarded-for'];
    if (peer === null || forwarded === undefined || !isTrusted(peer)) return peer;
    return firstUntrusted(peer, String(forwarded), isTrusted);
  };
}

/** Each proxy appends whom it was asked by, so the list is read from its end as far as its writers are trusted. */
function firstUntrusted(peer: string, forwarded: string, isTrusted: (address: string) => boolean): string {
  let from = peer;
  for (const text of forwarded.split(',').slice(-MOST_HOPS).reverse()) {
    const address = plain(text.trim());
    if (address === null) return from;
    from = address;
    if (!isTrusted(address)) return from;
  }
  return from;
}

/** An address without what IPv6 puts around one of IPv4; null for anything else. */
function plain(text: string | undefined): string | null {
  const address = (text ?? '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').replace(/^\[(.*)\]$/, '$1');
  return isIP(address) === 0 ? null : address;
}

function trusted(setting: string): (address: string) => boolean {
  const list = new BlockList();
  const entries = setting
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/');
    const version = isIP(address);
    const most = version === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (version === 0 || prefix < 0 || prefix > most) {
      const expected = 'expected addresses and ranges such as 10.0.0.0/8, separated by commas';
      throw new PunctualError('CONFIGURATION', `trustedProxies: ${expected}, got ${JSON.stringify(entry)}.`);
    }
    list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4');
  }
  if (entries.length === 0) return () => false;
  return (address) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}
