import { createServer } from 'node:net';
import { messageOf, PunctualError } from '../core/errors.js';

/** The error for a port that something else listens on; it names the option that chooses another. */
export function portInUse(host: string, port: number): PunctualError {
  return new PunctualError(
    'PORT_IN_USE',
    `Port ${port} on ${host} is taken by another program. Choose another one with --port.`,
  );
}

/**
 * Checks that a port can be listened on, before anything is started that would have to be stopped again.
 * Port 0 stands for any free one. Gives the port.
 */
export function claimPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') reject(portInUse(host, port));
      else {
        const detail = `Cannot listen on ${host}:${port}: ${messageOf(error)}. Choose another port with --port.`;
        reject(new PunctualError('CONFIGURATION', detail, { cause: error }));
      }
    });
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      const chosen = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => resolve(chosen));
    });
  });
}
