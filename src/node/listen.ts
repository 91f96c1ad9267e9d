import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';

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
  return `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}`;
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
