import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { PunctualError } from '../../../core/errors.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [Address, number];

/** Of the addresses of IPv6, only these are given out to hosts; `ipaddr.js` calls others unicast as well. */
const GLOBAL_IPV6: Range = [ipaddr.parse('2000::'), 3];

/** Addresses that count as public and are not: those of cloud machines to their host, and the newest ones of examples. */
const SPECIAL: readonly Range[] = [
  [ipaddr.parse('168.63.129.16'), 32],
  [ipaddr.parse('3fff::'), 20],
];

/**
 * Decides which addresses calls may go to: public ones, and those that the operator has opened. Whatever leads into the
 * network of the worker, or hides another address inside of it (mapped, NAT64, 6to4, Teredo), is refused. It must only be asked
 * about addresses that will be dialled as they are: never about names.
 */
export class AddressGuard {
  readonly #open: readonly Range[];

  /** `open` are CIDR ranges, or single addresses. */
  constructor(open: readonly string[] = []) {
    this.#open = open.map(rangeOf);
  }

  /** Whether a call may go to this address. */
  allows(address: string): boolean {
    // The parser also takes octal and shortened forms, which others read differently.
    if (isIP(address) === 0 || address.includes('%')) return false;
    const parsed = ipaddr.parse(address);
    if (this.#open.some((range) => isIn(parsed, range))) return true;
    if (parsed.range() !== 'unicast' || SPECIAL.some((range) => isIn(parsed, range))) return false;
    return parsed.kind() === 'ipv4' || isIn(parsed, GLOBAL_IPV6);
  }
}

function isIn(address: Address, [base, bits]: Range): boolean {
  return address.kind() === base.kind() && address.match(base as never, bits);
}

function rangeOf(text: string): Range {
  const [address = '', bits, more] = text.trim().split('/');
  const most = isIP(address) === 4 ? 32 : 128;
  const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (isIP(address) === 0 || more !== undefined || !(length <= most)) {
    const detail = `allowAddresses: expected an address or a CIDR range such as 10.0.0.0/8, got ${JSON.stringify(text)}.`;
    throw new PunctualError('CONFIGURATION', detail);
  }
  return [ipaddr.parse(address), length];
}
