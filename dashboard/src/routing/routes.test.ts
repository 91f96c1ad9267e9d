import { expect, it } from 'vitest';
import { matchRoute, ROUTES } from './routes.js';

it('a path leads to one screen, with the values of its segments', () => {
  expect(matchRoute('/')?.route.title).toBe('Home');
  expect(matchRoute('/jobs/')?.route.title).toBe('Jobs');
  expect(matchRoute('/queues/a%2Fb%20c')).toMatchObject({
    route: { title: 'Queue' },
    params: { name: 'a/b c' },
  });
  expect(matchRoute('/schedules/new')?.route.title).toBe('New schedule');
  for (const path of ['/nowhere', '/jobs/a/b', '/queues/%E0%A4%A']) expect(matchRoute(path)).toBe(null);
});

it('every screen of the navigation has a letter of its own, and every address is there once', () => {
  const shown = ROUTES.filter(({ group }) => group !== undefined);
  expect(shown.length).toBeGreaterThan(10);
  const letters = shown.map(({ letter }) => letter);
  expect(letters).not.toContain(undefined);
  expect(new Set(letters).size).toBe(letters.length);
  expect(new Set(ROUTES.map(({ path }) => path)).size).toBe(ROUTES.length);
});
