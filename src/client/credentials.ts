import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { environmentName, SETTINGS } from '../core/config.js';
import { messageOf, PunctualError } from '../core/errors.js';
import { nodeAddress } from '../transport/node-address.js';
import { DEFAULT_PROFILE, findProfile, type Profile } from './profiles.js';

interface CredentialOptions {
  /** Address of a node, or several: as a list or separated by commas. */
  readonly url?: string | readonly string[] | undefined;
  readonly apiKey?: string | undefined;
  /** The profile of `punctual login` to use; before the environment. */
  readonly profile?: string | undefined;
  /** Default the process's environment. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** The folder that relative paths start from; default the working folder. */
  readonly folder?: string | undefined;
}

/** The addresses of the nodes and the API key for them. */
export interface Credentials {
  readonly urls: readonly string[];
  readonly apiKey: string;
}

const FILE = 'credentials.json';

/**
 * Finds addresses and key. The options come first, then `PUNCTUAL_URL` and `PUNCTUAL_API_KEY` (or the files that
 * `PUNCTUAL_URL_FILE` and `PUNCTUAL_API_KEY_FILE` name), then the profile that `PUNCTUAL_PROFILE` names, then the
 * `credentials.json` in the data folder of `punctual up`, then the profile `default`.
 */
export function resolveCredentials(options: CredentialOptions = {}): Credentials {
  const environment = options.environment ?? process.env;
  const folder = options.folder ?? process.cwd();
  const path = join(resolve(folder, environment[environmentName('data')] || SETTINGS.data.default), FILE);
  const given = typeof options.url === 'string' || !options.url ? options.url : options.url.join(',');
  // A profile that the caller names comes before the environment.
  const { profile } = options;
  const url = given || (profile ? undefined : fromEnvironment('url', environment, folder));
  const apiKey = options.apiKey || (profile ? undefined : fromEnvironment('apiKey', environment, folder));
  const stored = url && apiKey ? null : findStored(path, environment, profile);
  const urls = url ? splitUrls(url) : (stored?.urls ?? []);
  if (urls.length === 0) {
    throw unknown(
      `No address of a node is known. Start one in this folder with "punctual up", log in with "punctual login URL", or set PUNCTUAL_URL and PUNCTUAL_API_KEY. (${path} was looked for.)`,
    );
  }
  for (const each of urls) nodeAddress(each);
  const isForThese = stored !== null && (!url || isForSameHosts(stored.url, urls));
  const key = apiKey || (isForThese ? stored.apiKey : '');
  if (!key) {
    throw unknown(
      `No key is known for ${urls.join(', ')}. Set PUNCTUAL_API_KEY, or PUNCTUAL_API_KEY_FILE to a file that holds it.`,
    );
  }
  return { urls, apiKey: key };
}

function findStored(
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
  profile: string | undefined,
): Stored | null {
  const name = profile || environment.PUNCTUAL_PROFILE;
  if (!name) return readStored(path) ?? ofProfile(findProfile(environment, DEFAULT_PROFILE));
  const found = ofProfile(findProfile(environment, name));
  if (found) return found;
  throw unknown(`There is no profile ${name}; make it with "punctual login URL --profile ${name}".`);
}

/** The error for what is not set at all; its message says what to do, and the hint about wrong settings would not fit. */
function unknown(detail: string): PunctualError {
  return new PunctualError('CONFIGURATION', detail, { hint: null });
}

function ofProfile(profile: Profile | null): Stored | null {
  if (profile === null) return null;
  const urls = splitUrls(profile.url);
  return { url: urls[0] ?? '', urls, apiKey: profile.apiKey };
}

function fromEnvironment(
  name: 'url' | 'apiKey',
  environment: Readonly<Record<string, string | undefined>>,
  folder: string,
): string | undefined {
  const variable = environmentName(name);
  const file = environment[`${variable}_FILE`];
  if (environment[variable] || !file) return environment[variable];
  try {
    return readFileSync(resolve(folder, file), 'utf8').trim();
  } catch (cause) {
    throw new PunctualError('CONFIGURATION', `${variable}_FILE cannot be read: ${messageOf(cause)}.`, {
      cause,
    });
  }
}

function splitUrls(text: string): string[] {
  return text
    .split(',')
    .map((url) => url.trim())
    .filter((url) => url !== '');
}

interface Stored {
  readonly url: string;
  readonly urls: readonly string[];
  readonly apiKey: string;
}

function readStored(path: string): Stored | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new PunctualError('CONFIGURATION', `${path} cannot be read: ${messageOf(cause)}.`, { cause });
  }
  try {
    const { url, urls, apiKey } = JSON.parse(text) as Partial<Stored>;
    const several = Array.isArray(urls) && urls.every((each) => typeof each === 'string');
    if (typeof url === 'string' && typeof apiKey === 'string')
      return { url, urls: several ? urls : [url], apiKey };
  } catch {
    // The error below covers files that are not JSON, too.
  }
  throw new PunctualError(
    'CONFIGURATION',
    `${path} does not hold an address and a key; remove it and start "punctual up" again.`,
  );
}

/** A stored key is sent only to the host that it was made for, whatever addresses are given. */
function isForSameHosts(storedUrl: string, urls: readonly string[]): boolean {
  const host = hostOf(storedUrl);
  return host !== null && urls.every((url) => hostOf(url) === host);
}

function hostOf(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { hostname } = new URL(url);
  return ['localhost', '[::1]'].includes(hostname) || hostname.startsWith('127.') ? 'loopback' : hostname;
}
