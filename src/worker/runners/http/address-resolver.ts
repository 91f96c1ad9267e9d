import { promises as dns } from 'node:dns';
import { isIP } from 'node:net';
import { messageOf } from '../../../core/errors.js';
import { noAnswer } from './call-error.js';

/** How long one question to a name server may take, and how often it is asked. */
const TRY_MS = 2_000;
const TRIES = 2;
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1'];

/** Finds the addresses of a name. */
export type LookUp = (host: string) => Promise<readonly string[]>;

/**
 * Finds the addresses of hosts. It asks name servers through c-ares and not through `dns.lookup`: that runs on the few threads of
 * the process, and four names that are not answered would hold up all others for many seconds. Questions for the same name
 * at the same time are one.
 */
export class AddressResolver {
  readonly #lookUp: LookUp;
  readonly #asked = new Map<string, Promise<readonly string[]>>();

  constructor(lookUp: LookUp = askNameServers()) {
    this.#lookUp = lookUp;
  }

  /** The addresses of a host as it stands in a URL: a literal is its own address. */
  resolve(hostname: string): Promise<readonly string[]> {
    const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    if (isIP(host) !== 0) return Promise.resolve([host]);
    const name = host.replace(/\.$/, '').toLowerCase();
    if (name === 'localhost' || name.endsWith('.localhost')) return Promise.resolve(LOOPBACK);
    const asked = this.#asked.get(name);
    if (asked !== undefined) return asked;
    const answer = this.#lookUp(name)
      .then((addresses) => {
        if (addresses.length > 0) return addresses;
        throw noAnswer('HTTP_DNS', `The name ${name} has no address.`);
      })
      .finally(() => this.#asked.delete(name));
    this.#asked.set(name, answer);
    return answer;
  }
}

/** Asks the name servers of the system, or those that are given as addresses with a port. */
export function askNameServers(servers?: readonly string[]): LookUp {
  const resolver = new dns.Resolver({ timeout: TRY_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const [first] = answers;
    if (found.length > 0 || first.status === 'fulfilled') return found;
    throw noAnswer('HTTP_DNS', `The name ${host} could not be resolved: ${whyNot(first.reason)}.`);
  };
}

/** What the codes of the resolver mean that are met most often; its messages name its own functions. */
const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'there is no such name',
  ENODATA: 'it has no address',
  ESERVFAIL: 'the name server failed',
  EREFUSED: 'the name server refused to answer',
  ETIMEOUT: 'no name server answered in time',
  ECONNREFUSED: 'no name server can be reached',
};

function whyNot(reason: unknown): string {
  const { code } = reason as { readonly code?: string };
  return (code === undefined ? undefined : REASONS[code]) ?? code ?? messageOf(reason);
}
