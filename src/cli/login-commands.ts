import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { DEFAULT_PROFILE, type Profiles, profilesPath, readProfiles } from '../client/profiles.js';
import { PunctualError } from '../core/errors.js';
import { NAME_PATTERN, NAME_RULE } from '../core/job.js';
import { askSecret } from './ask.js';
import { openApi, runsLocally } from './call.js';
import type { Cli } from './cli.js';

/** `punctual login` and `punctual logout`: keeping address and key of a cluster in the user's config folder. */
export function addLoginCommands(program: Command, cli: Cli): void {
  const login = program
    .command('login')
    .description(
      'keep the address of a cluster and a key for it; the key is read from the terminal or from stdin',
    )
    .argument('<url>', 'address of a node, or several separated by commas');
  runsLocally<object>(cli, login, ['profile', 'json'], async ({ output, options, args }) => {
    const profile = nameOf(cli, options.profile);
    const url = args[0]!;
    const path = whereProfilesAre(cli);
    const apiKey = (await askSecret(cli, `Key for ${url}: `)).trim();
    if (apiKey === '') throw new PunctualError('USAGE', 'No key was given.');
    await mustBeTaken(cli, url, apiKey);
    await writeProfiles(path, { ...readProfiles(cli.environment), [profile]: { url, apiKey } });
    output.document({ profile, url }, () => `Logged in to ${url} as profile ${profile}.\n`);
  });
  const logout = program.command('logout').description('forget the address and the key of a profile');
  runsLocally<object>(cli, logout, ['profile', 'json'], async ({ output, options }) => {
    const profile = nameOf(cli, options.profile);
    const path = whereProfilesAre(cli);
    const { [profile]: gone, ...others } = readProfiles(cli.environment);
    if (!gone) throw new PunctualError('USAGE', `There is no profile ${profile}.`);
    if (Object.keys(others).length > 0) await writeProfiles(path, others);
    else await rm(path);
    output.document({ profile }, () => `Profile ${profile} is forgotten; its key is still valid.\n`);
  });
}

function nameOf(cli: Cli, given: string | undefined): string {
  const name = given ?? (cli.environment.PUNCTUAL_PROFILE || DEFAULT_PROFILE);
  if (!NAME_PATTERN.test(name)) throw new PunctualError('USAGE', `--profile: ${NAME_RULE}.`);
  return name;
}

function whereProfilesAre(cli: Cli): string {
  const path = profilesPath(cli.environment);
  if (path !== null) return path;
  throw new PunctualError('CONFIGURATION', 'There is no config folder: set HOME or XDG_CONFIG_HOME.');
}

/** Asks the nodes whether they know the key. What it may do does not matter: being refused something is an answer, too. */
async function mustBeTaken(cli: Cli, url: string, apiKey: string): Promise<void> {
  const urls = url.split(',').map((each) => each.trim());
  const api = openApi({ urls, apiKey }, undefined);
  try {
    await api.request('GET', '/v1/cluster', { signal: cli.interrupted });
  } catch (error) {
    if (!(error instanceof PunctualError)) throw error;
    // The usual hint names options that this command does not have.
    if (error.code === 'UNAUTHENTICATED') {
      const hint = 'Type or pipe in a valid key; `punctual key create` makes one.';
      throw new PunctualError('UNAUTHENTICATED', error.message, { cause: error, hint });
    }
    if (error.code !== 'FORBIDDEN') throw error;
  } finally {
    await api.close();
  }
}

/** Replaces the file in one step, readable for its owner alone. */
async function writeProfiles(path: string, profiles: Profiles): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const part = `${path}.${process.pid}`;
  await writeFile(part, `${JSON.stringify({ profiles }, null, 2)}\n`, { mode: 0o600 });
  // The mode above does not count for a file that was left over.
  await chmod(part, 0o600);
  await rename(part, path);
}
