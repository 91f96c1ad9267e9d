/**
 * A program of its own that starts the embedded server on a folder, for tests that kill programs or let
 * several of them compete. Prints one line of JSON; stops the server when its input closes.
 */
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const source = fileURLToPath(new URL('../../src/embedded/embedded-postgres.ts', import.meta.url));
const { module } = await runnerImport(source, { logLevel: 'error' });
try {
  const server = await module.startEmbeddedPostgres({ dataFolder: process.argv[2] });
  console.log(JSON.stringify({ url: server.url, adopted: server.adopted }));
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.once('end', resolve));
  await server.stop();
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
