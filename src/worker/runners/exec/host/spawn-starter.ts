import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, PAYLOAD_FILE, removeUnused } from './job-folder.js';
import type { Bound, StartRequest } from './messages.js';
import type { Starter, StartListener } from './starter.js';

/** Starts programs by the means of Node, where there is no launcher. Limits are set by `prlimit`, which becomes the program. */
export class SpawnStarter implements Starter {
  start(request: StartRequest, listener: StartListener): void {
    let child: ChildProcess;
    try {
      child = spawned(request);
    } catch (thrown) {
      failed(listener, thrown as NodeJS.ErrnoException);
      return;
    }
    const { pid, stdout, stderr } = child;
    child.on('error', (error) => {
      if (pid === undefined) failed(listener, error);
    });
    if (pid === undefined) return;
    child.on('exit', (exitCode, signal) => listener.onExited(exitCode, signal));
    const removeFolder = async () => removeUnused(request.folder);
    listener.onStarted({ pid, stdout: stdout!, stderr: stderr!, removeFolder });
  }
}

function spawned({ argv, env, folder, filter, tree, bounds, prlimit }: StartRequest): ChildProcess {
  makeFolder(folder, tree.kind === 'user' ? tree.uid : null);
  const cwd = folder.path;
  const open: number[] = [];
  try {
    const files = [join(cwd, PAYLOAD_FILE), ...(filter === null ? [] : [filter])];
    for (const path of files) open.push(openSync(path, 'r'));
    const user = tree.kind === 'user' ? { uid: tree.uid, gid: tree.uid } : {};
    const [file, ...args] = prlimit === null ? argv : [...boundWords(prlimit, bounds), ...argv];
    // A session of its own: signals from terminals do not reach it, and its group can be signalled as a whole.
    const stdio: StdioOptions = [open[0]!, 'pipe', 'pipe', ...open.slice(1)];
    return spawn(file!, args, { cwd, env, detached: true, stdio, ...user });
  } finally {
    for (const descriptor of open) closeSync(descriptor);
  }
}

function boundWords(prlimit: string, bounds: readonly Bound[]): string[] {
  if (bounds.length === 0) return [];
  return [prlimit, ...bounds.map(({ name, soft, hard }) => `--${name}=${soft}:${hard}`), '--'];
}

function failed(listener: StartListener, { code = 'UNKNOWN', message }: NodeJS.ErrnoException): void {
  listener.onFailed(code, message);
}
