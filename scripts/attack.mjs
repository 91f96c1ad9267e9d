/** `npm run attack`: the attack. Arguments go to it: `--seconds N --seed N --only KIND[,KIND] --help`. */

import { join } from 'node:path';
import { runProgram } from './program.mjs';

await runProgram({
  name: 'attack',
  folder: join('test', 'attack'),
  main: join('attack', 'test', 'attack', 'main.js'),
});
