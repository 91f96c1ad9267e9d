import { createServer } from 'node:net';
import { messageOf, PunctualError } from '../core/errors.js';

/**
 * Checks that a port can be listened on, before anything is started that would have to be stopped again.
 * Port 0 stands for any free one. Gives the port.
 */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE';
      const detail = taken
        ? `Port ${port} on ${host} is taken by another program. Choose another one with --port.`
        : `Cannot listen on ${host}:${port}: ${messageOf(error)}. Choose another port with --port.`;
      reject(new PunctualError(taken ? 'PORT_IN_USE' : 'CONFIGURATION', detail, { cause: error }));
    });
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      const chosen = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => resolve(chosen));
    });
  });
}

/** An address that listens on everything is reached on this machine through the loopback. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
