/**
 * `npm run bench`: the measurements. The peers are installed into bench/ on first use, because neither users nor
 * developers of the product need them. Arguments go to the bench; `--help` lists them.
 */

import { join } from 'node:path';
import { install } from './install.mjs';
import { runProgram } from './program.mjs';

const args = process.argv.slice(2);
const withoutPeers =
  args.includes('--help') ||
  args.some((arg, i) => arg === '--peers=none' || (arg === '--peers' && args[i + 1] === 'none'));

await runProgram({
  name: 'bench',
  folder: 'bench',
  main: join('bench', 'bench', 'src', 'main.js'),
  prepare: async () => {
    if (!withoutPeers) await install('bench', 'Installing the peers to measure beside …');
  },
});
