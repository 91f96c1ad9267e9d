/** `npm run screenshots`: takes the pictures of the docs from a running demo. `--help` says with which options. */

import { join } from 'node:path';
import { runProgram } from './program.mjs';

await runProgram({
  name: 'taking of pictures',
  folder: join('test', 'screenshots'),
  main: join('screenshots', 'test', 'screenshots', 'main.js'),
});
