import { expect, it } from 'vitest';
import { type GraphStep, layOut, NODE_HEIGHT, NODE_WIDTH } from './graph-layout.js';

const step = (name: string, ...after: string[]): GraphStep => ({ name, after });

function randomGraph(count: number): GraphStep[] {
  let seed = 7;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  return Array.from({ length: count }, (_, i) => {
    const parents = i === 0 ? 0 : Math.floor(random() * 3) + 1;
    const from = Math.max(0, i - 60);
    const after = new Set(
      Array.from({ length: parents }, () => `s${from + Math.floor(random() * (i - from))}`),
    );
    return { name: `s${i}`, after: i === 0 ? [] : [...after] };
  });
}

it('every step is right of all that it waits for, and none lie on each other', () => {
  const steps = randomGraph(400);
  const { nodes, edges, width, height } = layOut(steps);
  expect(nodes).toHaveLength(400);
  expect(edges).toHaveLength(steps.reduce((sum, { after }) => sum + after.length, 0));
  for (const { from, to } of edges) expect(to.x).toBeGreaterThanOrEqual(from.x + NODE_WIDTH);
  const byLevel = new Map<number, number[]>();
  for (const { level, y } of nodes) byLevel.set(level, [...(byLevel.get(level) ?? []), y]);
  for (const heights of byLevel.values()) {
    heights.sort((a, b) => a - b);
    for (const [i, y] of heights.entries()) {
      if (i > 0) expect(y - heights[i - 1]!).toBeGreaterThanOrEqual(NODE_HEIGHT);
    }
  }
  for (const { x, y } of nodes) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + NODE_WIDTH).toBeLessThanOrEqual(width);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y + NODE_HEIGHT).toBeLessThanOrEqual(height);
  }
});

it('a diamond is drawn without a crossing', () => {
  const { nodes } = layOut([step('a'), step('b', 'a'), step('c', 'a'), step('b2', 'b'), step('c2', 'c')]);
  const at = (key: string) => nodes.find((node) => node.key === key)!;
  expect(Math.sign(at('b').y - at('c').y)).toBe(Math.sign(at('b2').y - at('c2').y));
});

it('many steps that are alike are one, and those that are wanted apart are not', () => {
  const many = Array.from({ length: 500 }, (_, i) => step(`page-${i}`, 'first'));
  const last = step('last', ...many.map(({ name }) => name));
  const { nodes, edges } = layOut([step('first'), ...many, last], (name) => name === 'page-7');
  expect(nodes.map(({ names }) => names.length).sort((a, b) => a - b)).toEqual([1, 1, 1, 499]);
  expect(edges).toHaveLength(4);
});

it('1,000 steps are laid out within 200 ms', () => {
  const steps = randomGraph(1_000);
  layOut(steps);
  const times = Array.from({ length: 3 }, () => {
    const began = process.cpuUsage();
    layOut(steps);
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1_000;
  });
  expect(Math.min(...times)).toBeLessThan(200);
});
