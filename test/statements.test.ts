import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Statement, statements } from '../src/store/database.js';

const STORE = new URL('../src/store/', import.meta.url);
for (const file of readdirSync(STORE)) {
  if (file.endsWith('.ts') && !file.includes('.test')) await import(new URL(file, STORE).href);
}

/** The text without the indentation that its lines have in common. */
function dedent(text: string): string {
  const lines = text.replace(/^\n/, '').split('\n');
  const indents = lines
    .slice(1)
    .filter((line) => line.trim() !== '')
    .map((line) => line.search(/\S/));
  const common = Math.min(...indents, Number.MAX_SAFE_INTEGER);
  return lines.map((line) => line.slice(Math.min(common, Math.max(0, line.search(/\S/))))).join('\n');
}

const WIDTH = 116;

/** Breaks long lines between words, wherever that is. */
function wrap(line: string): string {
  const indent = ' '.repeat(Math.max(0, line.search(/\S/)) + 2);
  const lines = [''];
  for (const word of line.split(/(?<=\S) /)) {
    const last = lines.at(-1)!;
    if (last !== '' && last.length + word.length >= WIDTH) lines.push(indent + word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.join('\n');
}

const readable = ({ name, text }: Statement) =>
  `-- ${name}\n${dedent(text).split('\n').map(wrap).join('\n')};\n`;

it('statements say what they have been reviewed to say', async () => {
  const all = [...statements()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(readable);
  await expect(all.join('\n')).toMatchFileSnapshot('./statements.snapshot.sql');
});

it('no two statements share a name, by which they are prepared', () => {
  const names = statements().map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});
