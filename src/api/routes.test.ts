import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ROUTES } from './routes.js';

const posts = ROUTES.filter(({ method, tag }) => method === 'POST' && tag !== 'internal');

describe('every POST says whether it takes an Idempotency-Key', () => {
  it.each(posts.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s',
    (_, { idempotent, scope }) => {
      expect(idempotent).toBeDefined();
      if (typeof idempotent === 'string') expect(idempotent.length).toBeGreaterThan(10);
      // Workers and attempts have their fences instead.
      if (idempotent === true) expect(['submit', 'admin', 'operator']).toContain(scope);
    },
  );
});

it('only a POST takes an Idempotency-Key: the other methods can be repeated as they are', () => {
  const others = ROUTES.filter(({ method, idempotent }) => method !== 'POST' && idempotent !== undefined);
  expect(others.map(({ id }) => id)).toEqual([]);
});

it('the OpenAPI document shows the header where it is taken, and nowhere else', () => {
  interface Operation {
    readonly operationId: string;
    readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  }
  const url = new URL('../../docs/openapi.json', import.meta.url);
  const { paths } = JSON.parse(readFileSync(url, 'utf8')) as {
    paths: Record<string, Record<string, Operation>>;
  };
  const shown = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .filter(({ parameters = [] }) =>
      parameters.some((each) => each.in === 'header' && each.name === 'idempotency-key'),
    )
    .map(({ operationId }) => operationId);
  const taken = ROUTES.filter(({ idempotent }) => idempotent === true).map(({ id }) => id);
  expect(shown.sort()).toEqual([...taken].sort());
});
