import { lockFolder } from '../host/folder-lock.js';
import { embeddedFailure } from './failure.js';

/** Locks a folder of the server for this process and gives the way to let go of it; fails naming who has it. */
export function lockServerFolder(folder: string): () => void {
  return lockFolder(folder, 'postgres.lock.', ({ pid, since }) => {
    const who = pid === process.pid ? 'this process itself' : `process ${pid}`;
    return embeddedFailure(
      `The folder ${folder} is in use by ${who} since ${since}. Stop that one first, or choose another folder with --data.`,
    );
  });
}
