import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createBrotliDecompress } from 'node:zlib';
import { type BrowserServer, chromium } from 'playwright-core';

/**
 * A real Chromium out of an npm package. The package's own starter is not used: its flags switch off the security of the web,
 * and with it everything that these tests are about.
 */

const run = promisify(execFile);

/** What starts a browser. */
interface Chromium {
  /** Missing where the Chrome of the machine is used. */
  readonly executablePath?: string;
  readonly channel?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Names a browser of the machine's instead. */
const OWN_BROWSER = 'PUNCTUAL_TEST_BROWSER';

const QUIET = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-quic',
  '--disable-sync',
  '--no-default-browser-check',
  '--no-first-run',
  '--no-pings',
  '--disable-webgl',
  '--font-render-hinting=none',
];

/** Unpacks Chromium once for each user, and finds out how it can be started here. */
async function findChromium(): Promise<Chromium> {
  const own = process.env[OWN_BROWSER];
  if (own) return { executablePath: own, args: QUIET, env: {} };
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { channel: 'chrome', args: QUIET, env: {} };
  const folder = await unpacked();
  const executablePath = join(folder, 'chromium');
  const env = { ...fontSettings(folder), ...(await librarySettings(folder, executablePath)) };
  return { executablePath, args: QUIET, env };
}

/** Starts a browser for whoever has its address. */
export async function startChromium(): Promise<BrowserServer> {
  const { args, env, ...found } = await findChromium();
  const start = (chromiumSandbox: boolean) =>
    chromium.launchServer({
      ...{ ...found, chromiumSandbox, headless: true, host: '127.0.0.1' },
      ...{ args: [...args], env: { ...(process.env as Record<string, string>), ...env } },
    });
  // Chromium refuses to run as root with its sandbox, and some systems let nobody else make one.
  if (process.getuid?.() === 0) return start(false);
  return start(true).catch((error: Error) => {
    if (!/sandbox/i.test(error.message)) throw error;
    return start(false);
  });
}

/** The folder with what the package has packed. It is made under another name, so that it is never there in part. */
async function unpacked(): Promise<string> {
  const require = createRequire(import.meta.url);
  const packed = join(dirname(require.resolve('@sparticuz/chromium')), '..', '..', 'bin');
  const { version } = JSON.parse(readFileSync(join(packed, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const folder = join(tmpdir(), `punctual-chromium-${userInfo().uid}-${version}`);
  if (existsSync(folder)) return folder;
  const draft = await mkdtemp(`${folder}-`);
  const target = createWriteStream(join(draft, 'chromium'), { mode: 0o700 });
  await pipeline(createReadStream(join(packed, 'chromium.br')), createBrotliDecompress(), target);
  for (const name of ['fonts', 'al2023']) await untar(join(packed, `${name}.tar.br`), join(draft, name));
  await writeFile(join(draft, 'fonts.conf'), fontFile(folder));
  try {
    await rename(draft, folder);
  } catch (error) {
    // Another run was faster.
    await rm(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** In two steps, because `tar` stops to read at the end of the archive, whatever follows. */
async function untar(archive: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const plain = join(folder, 'archive.tar');
  await pipeline(createReadStream(archive), createBrotliDecompress(), createWriteStream(plain));
  await run('tar', ['-xf', plain, '-C', folder]);
  await rm(plain);
}

/** A machine without fonts shows no text at all, so the fonts of the package are used there. */
function fontSettings(folder: string): Record<string, string> {
  return existsSync('/etc/fonts/fonts.conf') ? {} : { FONTCONFIG_FILE: join(folder, 'fonts.conf') };
}

/** The settings of the package name folders of another machine. */
function fontFile(folder: string): string {
  const here = (name: string) => join(folder, name);
  return `<?xml version="1.0"?><fontconfig><dir>${here('fonts')}</dir><cachedir>${here('font-cache')}</cachedir></fontconfig>\n`;
}

const PACKAGES = 'libnss3 libnspr4 libexpat1 libdbus-1-3 libatk1.0-0 libgbm1 libxkbcommon0 libasound2';

/** The package brings the libraries that a bare machine lacks; those of the machine come first. */
async function librarySettings(folder: string, program: string): Promise<Record<string, string>> {
  if ((await missingLibraries(program, {})).length === 0) return {};
  const { LD_LIBRARY_PATH: before } = process.env;
  const own = join(folder, 'al2023', 'lib');
  const env = { LD_LIBRARY_PATH: before ? `${before}:${own}` : own };
  const missing = await missingLibraries(program, env);
  if (missing.length === 0) return env;
  throw new Error(
    `Chromium lacks ${missing.join(', ')}. On Debian: apt-get install ${PACKAGES}. Or name a browser in ${OWN_BROWSER}.`,
  );
}

async function missingLibraries(program: string, env: Readonly<Record<string, string>>): Promise<string[]> {
  const { stdout } = await run('ldd', [program], { env: { ...process.env, ...env } });
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map(([, name]) => name!);
}
