import { execFile } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestDatabase } from './database.js';
import { PunctualProcess } from './punctual-process.js';
import { commandsOf, readSnippets, type Snippet } from './snippets.js';
import { temporaryFolder } from './temporary-folder.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

const isModule = (text: string): boolean => /^export /m.test(text);

/** Commands that go on until they are stopped, and what they print when they can be used. */
const GOES_ON: readonly (readonly [RegExp, 'stdout' | 'stderr', RegExp])[] = [
  [/^punctual up\b/, 'stdout', /^ready (\S+)/m],
  [/^punctual server\b/, 'stdout', /^ready (\S+)/m],
  [/^punctual worker run\b/, 'stderr', /registered/],
];

/**
 * Follows a page as a person would who has just cloned the repository: writes the modules, types the commands,
 * leaves running what goes on. What a person has to fill in is filled in here.
 */
export class DocumentationReader {
  #running: PunctualProcess[] = [];
  #url = '';
  readonly #environment: Record<string, string> = {};

  private constructor(
    readonly folder: string,
    private readonly database: TestDatabase,
  ) {}

  static async open(database: TestDatabase): Promise<DocumentationReader> {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'node_modules'));
    await symlink(ROOT, join(folder, 'node_modules', 'punctual'));
    await symlink(join(ROOT, 'bin'), join(folder, 'bin'));
    const tasks = readSnippets('README.md').find(({ text }) => isModule(text));
    await writeFile(join(folder, 'tasks.mjs'), tasks!.text);
    return new DocumentationReader(folder, database);
  }

  /** Plays one piece of the page; gives what the commands that ended have printed. */
  async play({ language, text }: Snippet): Promise<string> {
    switch (language) {
      case 'js':
        return this.#playModule(text);
      case 'sh':
        return this.#playShell(text);
      default:
        return '';
    }
  }

  async close(): Promise<void> {
    await this.#stopAll();
    await rm(this.folder, { recursive: true });
  }

  async #playModule(text: string): Promise<string> {
    if (isModule(text)) {
      await writeFile(join(this.folder, 'tasks.mjs'), text);
      return '';
    }
    await writeFile(join(this.folder, 'program.mjs'), text);
    return this.#type('node program.mjs');
  }

  async #playShell(text: string): Promise<string> {
    let printed = '';
    let script: string[] = [];
    const flush = async (): Promise<void> => {
      if (script.length > 0) printed += await this.#type(script.join('\n'));
      script = [];
    };
    for (const command of commandsOf(text).map((each) => this.#fillIn(each))) {
      const [, name, value] = /^export (\w+)=(\S+)$/.exec(command) ?? [];
      if (name !== undefined) this.#environment[name] = value!;
      else if (GOES_ON.some(([pattern]) => pattern.test(command))) {
        await flush();
        await this.#leaveRunning(command);
      } else script.push(command);
    }
    await flush();
    const key = /^pk_op_\S+$/m.exec(printed)?.[0];
    if (key !== undefined) this.#environment.PUNCTUAL_API_KEY = key;
    return printed;
  }

  /** Addresses and ports of this machine, a database that exists, and what stands for something to fill in. */
  #fillIn(command: string): string {
    return (
      command
        .replace(/^npm start$/, 'punctual up --demo')
        .replace(/^(\w+=… )?(bin\/)?punctual /, 'punctual ')
        .replace(/postgres:\/\/\w+:\w+@\w+\/\w+/, this.database.url)
        .replace(/ --advertise-url \S+/, '')
        // No page makes a certificate; a test of its own does.
        .replace(/ --tls-cert \S+ --tls-key \S+/, '')
        .replace(/https?:\/\/(127\.0\.0\.1|node(-\d)?):8080/g, this.#url)
        .replace('--host 0.0.0.0', '--host 127.0.0.1')
        .replace('--port 8080', '--port 0')
    );
  }

  async #leaveRunning(command: string): Promise<void> {
    // Each start of everything takes the place of the one before.
    if (/^punctual (up|server)\b/.test(command)) await this.#stopAll();
    const [, ...args] = command.split(/\s+/);
    const started = new PunctualProcess(args, { folder: this.folder, environment: this.#settings() });
    this.#running.push(started);
    const [, stream, pattern] = GOES_ON.find(([each]) => each.test(command))!;
    const [, url] = await started.prints(stream, pattern);
    if (url !== undefined) this.#url = url;
  }

  #settings(): Record<string, string> {
    return { PUNCTUAL_PORT: '0', PUNCTUAL_DATABASE_URL: this.database.url, ...this.#environment };
  }

  /** Runs a script to its end; rejects when a command of it fails. */
  async #type(script: string): Promise<string> {
    const { PATH, HOME } = process.env;
    const server = this.#environment.PUNCTUAL_API_KEY ? { PUNCTUAL_URL: this.#url } : {};
    const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      cwd: this.folder,
      env: { HOME, PATH: `${join(this.folder, 'bin')}:${PATH}`, ...this.#environment, ...server },
    });
    return stdout;
  }

  /** The second signal stops at once what the first one only asks to finish. */
  async #stopAll(): Promise<void> {
    for (const each of this.#running.splice(0).reverse()) {
      each.child.kill('SIGTERM');
      const patience = setTimeout(() => each.child.kill('SIGTERM'), 500);
      await each.ended;
      clearTimeout(patience);
    }
  }
}
