import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Ports below the range that systems give to outgoing connections, so that a remembered port is seldom
 * found taken by somebody's passing connection.
 */
const LOWEST = 20_000;
const HIGHEST = 29_999;
const TRIES = 50;

/** The preferred port if it is free, else another free one of 127.0.0.1. */
export async function freePort(preferred: number | null): Promise<number> {
  if (preferred !== null && (await bind(preferred)) !== null) return preferred;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = await bind(randomInt(LOWEST, HIGHEST + 1));
    if (port !== null) return port;
  }
  return (await bind(0)) ?? HIGHEST;
}

function bind(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}
