import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/i;

/** Refuses to send keys and payloads over a network in the clear, unless the operator has said that it is safe. */
export function mustBePrivate({ host, tlsCert, insecure }: Config): void {
  if (tlsCert !== '' || insecure || LOOPBACK.test(host)) return;
  throw new PunctualError(
    'CONFIGURATION',
    `A node that listens on ${host} without TLS would send keys and payloads in the clear. ` +
      'Give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that ends TLS, ' +
      'or say --insecure if nobody else can read what goes over this network.',
  );
}

/** Listens, and answers with the port. */
export async function listen(server: FastifyInstance, config: Config): Promise<number> {
  try {
    await server.listen({ host: config.host, port: config.port });
  } catch (error) {
    await server.close();
    throw explain(error as NodeJS.ErrnoException, config);
  }
  return (server.server.address() as AddressInfo).port;
}

/** The address under which others reach a node that says nothing else. */
export function addressOf(config: Config, port: number): string {
  if (config.advertiseUrl) return config.advertiseUrl;
  const scheme = config.tlsCert === '' ? 'http' : 'https';
  return `${scheme}://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;
}

function explain(error: NodeJS.ErrnoException, { host, port }: Config): PunctualError {
  if (error.code === 'EADDRINUSE') {
    return new PunctualError('PORT_IN_USE', `Port ${port} on ${host} is taken; choose another with --port.`, {
      cause: error,
    });
  }
  return new PunctualError('CONFIGURATION', `Cannot listen on ${host}:${port}: ${messageOf(error)}.`, {
    cause: error,
  });
}
