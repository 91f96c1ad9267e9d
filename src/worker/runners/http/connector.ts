import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { AddressGuard } from './address-guard.js';
import type { AddressResolver } from './address-resolver.js';
import { refused } from './call-error.js';

/** How long one address is tried before the next. */
const CONNECT_TIMEOUT_MS = 10_000;
/** The most addresses of one host that are tried. */
const MOST_ADDRESSES = 3;

/** Opens a connection to an address; `servername` is the name that its certificate must have. */
export type Dial = buildConnector.connector;

/** The same for one client, which needs it no longer when the signal aborts. */
export type Connect = (...parameters: [...Parameters<Dial>, signal: AbortSignal]) => void;

interface ConnectorParts {
  readonly resolver: AddressResolver;
  readonly guard: AddressGuard;
  readonly dial?: Dial;
}

/**
 * How connections of calls are opened: the host is resolved here, every address of it is checked, and one of those that were
 * checked is dialled by its number, so that no second look at the name can lead elsewhere. Literals take the same way.
 */
export function guardedConnector({ resolver, guard, dial = openDial() }: ConnectorParts): Connect {
  return (options, callback, signal) => {
    void (async () => {
      const host = options.hostname.startsWith('[') ? options.hostname.slice(1, -1) : options.hostname;
      const addresses = await resolver.resolve(host);
      const bad = addresses.find((address) => !guard.allows(address));
      if (bad !== undefined) throw refusedAddress(host, bad);
      let failure: unknown;
      for (const address of addresses.slice(0, MOST_ADDRESSES)) {
        signal.throwIfAborted();
        try {
          return await dialOne(dial, { ...options, ...namesOf(host), hostname: address }, signal);
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    })().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** A certificate is checked against the name; an address has none to be asked for. */
function namesOf(host: string): { readonly servername?: string } {
  return isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {};
}

function refusedAddress(host: string, address: string): Error {
  const where = host === address ? address : `${host} (${address})`;
  return refused(
    'ADDRESS_REFUSED',
    `Calls to ${where} are not allowed: the address is not public. An operator can open it with --allow-address.`,
  );
}

function dialOne(dial: Dial, options: buildConnector.Options, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let opening: Socket | undefined;
    const giveUp = () => opening?.destroy(signal.reason);
    // The types do not say that it answers with the socket that is being opened.
    opening = dial(options, (...[error, socket]) => {
      signal.removeEventListener('abort', giveUp);
      if (error) reject(error);
      else resolve(socket);
    }) as unknown as Socket | undefined;
    signal.addEventListener('abort', giveUp, { once: true });
  });
}

function openDial(): Dial {
  return buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false });
}
