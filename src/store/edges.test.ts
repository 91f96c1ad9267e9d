import { expect, it } from 'vitest';
import { uuidv7 } from '../core/uuid.js';
import { edgeLists, type PlacedEdges } from './edges.js';

const idsOf = (steps: number) => Array.from({ length: steps }, () => uuidv7(1_000));

/** The lists of each step, by the bounds. */
function listsOf({ places, bounds }: ReturnType<typeof edgeLists>, steps: number) {
  const list = (from: number, to: number) => places.slice(from - 1, Math.max(to, from - 1));
  return Array.from({ length: steps }, (_, i) => {
    const [a, b, c, d] = bounds.slice(4 * i, 4 * i + 4) as [number, number, number, number];
    return { parents: list(a, b), children: list(c, d) };
  });
}

it('every step has the list of its parents and of its children, each in the order of their ids', () => {
  for (let round = 0; round < 200; round++) {
    const steps = 1 + Math.floor(Math.random() * 12);
    // The order of the steps need not be that of their ids.
    const ids = idsOf(steps).sort(() => (round % 2 === 0 ? 0 : Math.random() - 0.5));
    const edges: PlacedEdges & { parents: number[]; children: number[] } = { parents: [], children: [] };
    for (let child = 1; child < steps; child++) {
      for (let parent = 0; parent < child; parent++) {
        if (Math.random() < 0.6) continue;
        edges.parents.push(parent);
        edges.children.push(child);
      }
    }
    const byId = (a: number, b: number) => (ids[a]! < ids[b]! ? -1 : 1);
    const at = (wanted: readonly number[], by: readonly number[], step: number) =>
      wanted.filter((_, i) => by[i] === step).sort(byId);
    expect(listsOf(edgeLists(ids, edges), steps)).toEqual(
      ids.map((_, step) => ({
        parents: at(edges.parents, edges.children, step),
        children: at(edges.children, edges.parents, step),
      })),
    );
  }
});

it('steps that follow each other and have the same neighbours share one list', () => {
  const width = 1_000;
  const parents: number[] = [];
  const children: number[] = [];
  for (let i = 1; i <= width; i++) {
    parents.push(0, i);
    children.push(i, width + 1);
  }
  // Each list is sent once: [0], 1 to 1,000 twice, [1,001].
  expect(edgeLists(idsOf(width + 2), { parents, children }).places).toHaveLength(2 * width + 2);
});
