/**
 * `npm run fault`: the fault harness. Arguments go to it: `--scenario NAME --seconds N --seed N --json`.
 */

import { join } from 'node:path';
import { runProgram } from './program.mjs';

await runProgram({
  name: 'fault harness',
  folder: join('test', 'fault'),
  main: join('fault', 'test', 'fault', 'main.js'),
});
