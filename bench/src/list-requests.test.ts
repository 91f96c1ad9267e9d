import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Draw, LIST_REQUESTS } from './list-requests.js';
import { repository } from './repository.js';

const job = { id: '01890a5d-ac96-774b-bcce-b302099a8057', createdAt: 0, key: 'order-70' };
const draw: Draw = {
  job: () => job,
  keyed: () => job,
  oneOf: ([first]) => first!,
  below: () => 0,
};

/** The filters that docs/lists.md tells of. */
function documentedFilters(): readonly string[] {
  const page = readFileSync(join(repository, 'docs', 'lists.md'), 'utf8');
  const cells = [...page.matchAll(/^\| (`[^|]+) \|[^|]*\|[^|]*\|$/gm)].map(([, cell]) => cell!);
  return cells.flatMap((cell) => [...cell.matchAll(/`([a-zA-Z]+)[^`]*`/g)].map(([, name]) => name!));
}

describe('the requests of lists', () => {
  it('use every filter that the documentation tells of', () => {
    const filters = documentedFilters();
    expect(filters).toContain('errorCode');
    const paths = LIST_REQUESTS.map(({ path }) => path(draw)).join(' ');
    for (const filter of filters) expect(paths).toMatch(new RegExp(`[?&]${filter}[.=]`));
  });

  it('have names of their own', () => {
    const names = LIST_REQUESTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
