import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A piece of code on a page of the documentation. */
export interface Snippet {
  readonly language: string;
  readonly text: string;
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FENCE = /^```(\w+)\n([\s\S]*?)^```$/gm;

/** The pieces of code of a page, in order. */
export function readSnippets(page: string): Snippet[] {
  const text = readFileSync(`${ROOT}/${page}`, 'utf8');
  return [...text.matchAll(FENCE)].map(([, language, code]) => ({ language: language!, text: code! }));
}

/** The commands of a piece of shell, without remarks; lines that go on are joined. */
export function commandsOf(shell: string): string[] {
  return shell
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
}
