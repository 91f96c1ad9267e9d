import { constants } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { ExecError } from './exec-error.js';

/** Where programs of the machine are looked for that a target names without a folder. */
export const PROGRAM_PATH = '/usr/local/bin:/usr/bin:/bin';

/**
 * The file of a command. It is looked at before it is run, because the kernel's refusal of a file makes every tool that starts
 * programs hand it to a shell, which would run whatever is in it.
 */
export async function commandFile(command: string): Promise<string> {
  const candidates = isAbsolute(command)
    ? [command]
    : command.includes('/')
      ? []
      : PROGRAM_PATH.split(delimiter).map((folder) => join(folder, command));
  for (const path of candidates) {
    if (!(await isProgram(path))) continue;
    if (await hasKnownForm(path)) return path;
    throw notRunnable(`${command} is neither a binary of Linux nor a script that begins with #!`);
  }
  if (candidates.length === 0) throw notRunnable(`${command} must be a name, or a path from / on`);
  throw notRunnable(`${command} is no program on this machine`);
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

async function hasKnownForm(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    const head = buffer.toString('latin1', 0, bytesRead);
    return head === '\x7fELF' || head.startsWith('#!') || process.platform !== 'linux';
  } finally {
    await file.close();
  }
}

function notRunnable(message: string): ExecError {
  return new ExecError('NOT_RUNNABLE', `${message}.`, { retryable: false });
}
