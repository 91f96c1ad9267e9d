import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, PunctualError } from '../core/errors.js';

/** Addresses and keys that `punctual login` keeps in the user's config folder, by the name of a profile. */

/** The profile that is used when none is named. */
export const DEFAULT_PROFILE = 'default';

/** A cluster and the key for it. */
export interface Profile {
  /** One address, or several separated by commas. */
  readonly url: string;
  readonly apiKey: string;
}

export type Profiles = Readonly<Record<string, Profile>>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Where profiles are kept; null if the environment names no home. */
export function profilesPath({ XDG_CONFIG_HOME, HOME, USERPROFILE }: Environment): string | null {
  const home = HOME || USERPROFILE;
  const folder = XDG_CONFIG_HOME || (home ? join(home, '.config') : '');
  return folder === '' ? null : join(folder, 'punctual', 'profiles.json');
}

/** All profiles; none if there is no file. */
export function readProfiles(environment: Environment): Profiles {
  const path = profilesPath(environment);
  if (path === null) return {};
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new PunctualError('CONFIGURATION', `${path} cannot be read: ${messageOf(cause)}.`, { cause });
  }
  try {
    const { profiles } = JSON.parse(text) as { profiles: Profiles };
    const isProfile = ({ url, apiKey }: Profile) => typeof url === 'string' && typeof apiKey === 'string';
    if (Object.values(profiles).every(isProfile)) return profiles;
  } catch {
    // The error below covers files that are not JSON, too.
  }
  throw new PunctualError('CONFIGURATION', `${path} holds no profiles; remove it and log in again.`);
}

/** The profile of that name; null if there is none. */
export function findProfile(environment: Environment, name: string): Profile | null {
  const profiles = readProfiles(environment);
  return Object.hasOwn(profiles, name) ? profiles[name]! : null;
}
