import { connect, task } from '../../dist/index.js';

/** A worker with the log that the SDK has by default; it works until its standard input ends. */
const fails = task('fails', { retry: { maxAttempts: 1 } }, (input) => {
  throw Object.assign(new Error(input.why), { code: 'ON_PURPOSE' });
});
const works = task('works', (input) => input);

const worker = connect({ url: process.argv.slice(2) }).worker([fails, works], { name: 'partner' });
process.stdin.resume().on('end', () => void worker.drain());
await worker.run();
process.exit(0);
