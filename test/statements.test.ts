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

const readable = ({ name, text }: Statement) => `-- ${name}\n${dedent(text)};\n`;

it('statements say what they have been reviewed to say', async () => {
  const all = [...statements()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(readable);
  await expect(all.join('\n')).toMatchFileSnapshot('./statements.snapshot.sql');
});

it('no two statements share a name, by which they are prepared', () => {
  const names = statements().map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});
