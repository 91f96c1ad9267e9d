import { execFile } from 'node:child_process';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import openapiTypescript, { astToString } from 'openapi-typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Inside the repository, so that what is generated finds the installed packages. */
const FOLDER = join(ROOT, '.cache', 'generated-client');
/** As strict as a careful user's project. */
const PROJECT = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    module: 'NodeNext',
    target: 'ES2022',
    lib: ['ES2023', 'DOM'],
    types: ['node'],
  },
  files: ['program.ts'],
};

const run = promisify(execFile);

/**
 * Generates the types of a client from the document, compiles the program that uses them, and returns the path of the
 * compiled program.
 */
export async function compileClient(document: string): Promise<string> {
  const write = (name: string, content: string) => writeFile(join(FOLDER, name), content);
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  await write('package.json', '{"type": "module"}');
  await write('tsconfig.json', JSON.stringify(PROJECT));
  await write('openapi.ts', astToString(await openapiTypescript(document)));
  await copyFile(fileURLToPath(new URL('program.txt', import.meta.url)), join(FOLDER, 'program.ts'));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await run(process.execPath, [compiler, '-p', FOLDER]).catch((error) => {
    throw new Error(`The generated client does not compile:\n${error.stdout}`);
  });
  return join(FOLDER, 'program.js');
}
