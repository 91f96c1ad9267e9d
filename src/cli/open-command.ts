import { spawn } from 'node:child_process';
import type { Command } from 'commander';
import { callsServer, findCredentials } from './call.js';
import type { Cli } from './cli.js';
import { makeSignInLink } from './sign-in-link.js';

interface OpenOptions {
  readonly browser: boolean;
}

/** `punctual open`: a link that signs in to the dashboard once. */
export function addOpenCommand(program: Command, cli: Cli): void {
  const command = program
    .command('open')
    .description(
      'print a link that opens the dashboard and signs in once, within ten minutes; open it in a browser',
    )
    .option('--no-browser', 'print the link only');
  callsServer<OpenOptions>(
    cli,
    command,
    async ({ api, output, options }) => {
      const [node] = findCredentials(cli, options).urls;
      const link = await makeSignInLink(api, node!, cli.interrupted);
      output.document(link, () => `${link.url}\n`);
      if (options.browser && !options.json && cli.stdout.isTTY) openBrowser(cli, link.url);
    },
    ['url', 'apiKey', 'profile', 'json'],
  );
}

/** Has the desktop open an address, where there is one; what comes of it does not matter, because the link is printed. */
function openBrowser({ environment }: Cli, url: string): void {
  const opener = openerOf(process.platform, environment);
  if (!opener) return;
  const [program, ...args] = opener;
  const started = spawn(program!, [...args, url], { stdio: 'ignore', detached: true });
  started.on('error', () => undefined);
  started.unref();
}

/** The program that opens addresses; null where nobody would see the browser. */
export function openerOf(
  platform: NodeJS.Platform,
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] | null {
  if (platform === 'darwin') return ['open'];
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler'];
  return environment.DISPLAY || environment.WAYLAND_DISPLAY ? ['xdg-open'] : null;
}
