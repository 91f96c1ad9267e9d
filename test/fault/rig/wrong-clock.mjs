/**
 * Loaded into a process before anything else: its wall clock is wrong by what the file named in FAULT_CLOCK says,
 * in milliseconds, and jumps when SIGUSR2 makes it look again. Monotonic time goes on as it is.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const FILE = process.env.FAULT_CLOCK;
const RealDate = Date;
let wrongByMs = 0;

function look() {
  wrongByMs = Number(readFileSync(FILE, 'utf8'));
}

class WrongDate extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + wrongByMs);
    else super(...args);
  }

  static now() {
    return RealDate.now() + wrongByMs;
  }
}

if (FILE !== undefined) {
  look();
  globalThis.Date = WrongDate;
  if (isMainThread) {
    process.on('SIGUSR2', () => {
      look();
      // The observer compares this with the true time and so sees that the jump took place.
      writeFileSync(`${FILE}.seen`, String(Date.now()));
    });
  }
}
