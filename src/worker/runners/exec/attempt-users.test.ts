import { expect, it } from 'vitest';
import { AttemptUsers } from './attempt-users.js';

it('no two attempts have the same user at the same time', () => {
  const users = new AttemptUsers({ first: 50_000, count: 20 });
  const taken = Array.from({ length: 20 }, () => users.take());
  expect(new Set(taken).size).toBe(20);
  expect([...taken].sort()).toEqual(Array.from({ length: 20 }, (_, i) => 50_000 + i));
  users.giveBack(50_007);
  expect(users.take()).toBe(50_007);
});

it('where there are no users, attempts have none', () => {
  const users = new AttemptUsers(null);
  expect(users.take()).toBeNull();
  users.giveBack(null);
});
