import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobState } from '../core/job.js';
import { graphs } from '../core/workflow/graphs.fixture.js';
import { type DrawnStep, drawGraph, toDot, toMermaid } from './graph-drawing.js';
import { layersOf } from './graph-layout.js';

const plain = (_style: string, text: string) => text;

function step(name: string, state: JobState, ...after: string[]): DrawnStep {
  return { name, state, after, runIf: 'all-succeeded' };
}

function drawn(steps: readonly DrawnStep[], width?: number): string {
  return `\n${drawGraph(steps, { paint: plain, width })}`;
}

const DIAMOND = [
  step('a', 'succeeded'),
  step('bottom', 'running', 'a'),
  step('c', 'failed', 'a'),
  step('d', 'blocked', 'bottom', 'c'),
];

const random = graphs(10).map((jobs) =>
  Object.entries(jobs).map(
    ([name, { after, runIf }]): DrawnStep => ({ name, after, runIf, state: 'pending' }),
  ),
);

const WAYS: Readonly<Record<string, string>> = {
  '│': 'ud',
  '─': 'lr',
  '└': 'ur',
  '┘': 'ul',
  '┌': 'dr',
  '┐': 'dl',
  '├': 'udr',
  '┤': 'udl',
  '┴': 'lru',
  '┬': 'lrd',
  '┼': 'lrud',
};
const MOVES = { u: [-1, 0, 'd'], d: [1, 0, 'u'], l: [0, -1, 'r'], r: [0, 1, 'l'] } as const;

/** The edges that a reader sees: from the symbol of a step down along the lines, never up, to the steps below. */
function edgesIn(picture: string, steps: readonly DrawnStep[]): string[] {
  const rows = picture.split('\n').map((line) => [...line]);
  const nameAt = (row: number, column: number): string | null => {
    const text = (rows[row] ?? []).join('');
    const label = steps.find(({ name, after }) => {
      const at = text.search(new RegExp(`◌ ${name}(?![A-Za-z0-9])`));
      if (at < 0 || column < at) return false;
      // A short name with many parents has room beside it for their lines.
      const room = text.slice(at + name.length + 2, column + 1);
      return column < at + Math.max(name.length + 2, after.length) && room.trim() === '';
    });
    return label?.name ?? null;
  };
  const edges: string[] = [];
  for (const [row, line] of rows.entries()) {
    for (const [column, sign] of line.entries()) {
      if (sign !== '◌') continue;
      const from = nameAt(row, column)!;
      const seen = new Set<string>();
      const visit = (r: number, c: number, came: string): void => {
        const here = rows[r]?.[c] ?? ' ';
        const ways = WAYS[here];
        if (ways === undefined) {
          const to = came === 'u' ? nameAt(r, c) : null;
          if (to !== null) edges.push(`${from} > ${to}`);
          return;
        }
        // A line that is crossed goes on behind the one that crosses it.
        if (here === '│' && (came === 'l' || came === 'r')) {
          const [, step] = MOVES[came === 'l' ? 'r' : 'l'];
          visit(r, c + step, came);
          return;
        }
        if (!ways.includes(came) || seen.has(`${r} ${c}`)) return;
        seen.add(`${r} ${c}`);
        for (const way of [...ways] as ('u' | 'd' | 'l' | 'r')[]) {
          if (way === came || way === 'u') continue;
          const [down, right, back] = MOVES[way];
          visit(r + down, c + right, back);
        }
      };
      visit(row + 1, column, 'u');
    }
  }
  return edges;
}

describe('a graph on the terminal', () => {
  it('is drawn in layers: A > B, C > D', () => {
    expect(drawn(DIAMOND)).toMatchInlineSnapshot(`
      "
      ✓ a
      ├──────────┐
      ● bottom   ✗ c
      └────┬─────┘
           ○ d

      ○ 1 blocked  ● 1 running  ✓ 1 succeeded  ✗ 1 failed
      "
    `);
  });

  it('is a straight line for a chain', () => {
    const chain = [
      step('first', 'succeeded'),
      step('second', 'running', 'first'),
      step('third', 'blocked', 'second'),
    ];
    expect(drawn(chain)).toMatchInlineSnapshot(`
      "
      ✓ first
      │
      ● second
      │
      ○ third

      ○ 1 blocked  ● 1 running  ✓ 1 succeeded
      "
    `);
  });

  it('leads an edge over several layers past the steps between', () => {
    const steps = [
      step('a', 'succeeded'),
      step('b', 'succeeded', 'a'),
      step('c', 'running', 'b'),
      step('d', 'blocked', 'c', 'a'),
    ];
    expect(drawn(steps)).toMatchInlineSnapshot(`
      "
      ✓ a
      ├─────┐
      ✓ b   │
      │     │
      ● c   │
      └──┬──┘
         ○ d

      ○ 1 blocked  ● 1 running  ✓ 2 succeeded
      "
    `);
  });

  it('tells lines that cross from lines that meet', () => {
    const steps = [
      step('one', 'succeeded'),
      step('two', 'succeeded'),
      step('three', 'succeeded'),
      step('x', 'pending', 'two', 'three'),
      step('y', 'pending', 'one', 'three'),
      step('z', 'skipped', 'one'),
    ];
    expect(drawn(steps)).toMatchInlineSnapshot(`
      "
      ✓ one   ✓ two   ✓ three
      ├───────│┐      │
      │       └│──────│┐
      │        │┌─────┴│┐
      - z      ◌ y     ◌ x

      ◌ 2 pending  ✓ 3 succeeded  - 1 skipped
      "
    `);
  });

  it('shares one line between steps that lead to the same steps', () => {
    const steps = [
      step('in', 'succeeded'),
      ...['p', 'q', 'r'].map((name) => step(name, 'running', 'in')),
      step('out', 'blocked', 'p', 'q', 'r'),
    ];
    expect(drawn(steps)).toMatchInlineSnapshot(`
      "
      ✓ in
      ├─────┬─────┐
      ● p   ● q   ● r
      └─────┴┬────┘
             ○ out

      ○ 1 blocked  ● 3 running  ✓ 1 succeeded
      "
    `);
  });

  it('is summarised by layer if it is large', () => {
    const states: JobState[] = ['succeeded', 'failed', 'running'];
    const wide = Array.from({ length: 5_000 }, (_, i) =>
      step(`s${i}`, states[i % 997] ?? 'succeeded', 'split'),
    );
    const steps = [
      step('split', 'succeeded'),
      ...wide,
      step('join', 'blocked', ...wide.map(({ name }) => name)),
    ];
    expect(drawn(steps)).toMatchInlineSnapshot(`
      "
      1  ✓ split
      2  5000 steps: ● 6  ✓ 4988  ✗ 6
      3  ○ join

      ○ 1 blocked  ● 6 running  ✓ 4989 succeeded  ✗ 6 failed
      "
    `);
  });

  it('is summarised by layer if it does not fit the terminal', () => {
    expect(drawn(DIAMOND, 10)).toMatchInlineSnapshot(`
      "
      1  ✓ a
      2  2 steps: ● 1  ✗ 1
      3  ○ d

      ○ 1 blocked  ● 1 running  ✓ 1 succeeded  ✗ 1 failed
      "
    `);
  });

  it('never takes more columns than the terminal has, and shows each step in a layer behind its parents', () => {
    fc.assert(
      fc.property(random, fc.integer({ min: 20, max: 100 }), (steps, width) => {
        const [picture] = drawGraph(steps, { paint: plain, width }).split('\n\n');
        for (const line of picture!.split('\n')) expect(line.length).toBeLessThanOrEqual(width);
        const layers = layersOf(steps);
        const layerOf = new Map(steps.map(({ name }, index) => [name, layers[index]!]));
        for (const { name, after } of steps)
          for (const parent of after) expect(layerOf.get(parent)!).toBeLessThan(layerOf.get(name)!);
      }),
    );
  });

  it('draws every step of a graph that fits, once', () => {
    fc.assert(
      fc.property(random, (steps) => {
        const [text] = drawGraph(steps, { paint: plain }).split('\n\n') as [string];
        for (const { name } of steps)
          expect(text.split(new RegExp(`◌ ${name}(?![A-Za-z0-9])`)).length).toBe(2);
      }),
    );
  });

  it('can be followed from line to line to exactly the edges of the graph', () => {
    fc.assert(
      fc.property(random, (steps) => {
        const [text] = drawGraph(steps, { paint: plain }).split('\n\n') as [string];
        const edges = steps.flatMap(({ name, after }) => after.map((parent) => `${parent} > ${name}`));
        expect(edgesIn(text, steps).sort()).toEqual(edges.sort());
      }),
      { numRuns: 300 },
    );
  });

  it('takes a chain of ten thousand', () => {
    const chain = Array.from({ length: 10_000 }, (_, i) =>
      step(`s${i}`, 'pending', ...(i === 0 ? [] : [`s${i - 1}`])),
    );
    expect(drawGraph(chain, { paint: plain }).split('\n').length).toBeLessThan(100);
  });
});

describe('a graph for other programs', () => {
  it('has every step and every edge, in Graphviz and in Mermaid', () => {
    fc.assert(
      fc.property(random, (steps) => {
        const dot = toDot('w', steps);
        const mermaid = toMermaid(steps);
        const idOf = new Map(steps.map(({ name }, index) => [name, `s${index}`]));
        for (const { name, after } of steps) {
          expect(dot).toContain(`  "${name}" [`);
          expect(mermaid).toContain(`  ${idOf.get(name)}["${name}"]`);
          for (const parent of after) {
            expect(dot).toContain(`  "${parent}" -> "${name}"`);
            expect(mermaid).toMatch(
              new RegExp(`^  ${idOf.get(parent)} (-->|-- [a-z-]+ -->) ${idOf.get(name)}$`, 'm'),
            );
          }
        }
        const edges = steps.reduce((sum, { after }) => sum + after.length, 0);
        expect(dot.split(' -> ').length - 1).toBe(edges);
        expect(mermaid.split('-->').length - 1).toBe(edges);
      }),
    );
  });

  it('escapes what has a meaning in those languages', () => {
    const steps = [step('a"];\n\\', 'pending'), step('<b>#', 'pending', 'a"];\n\\')];
    expect(toDot('n"\\', steps)).toMatchInlineSnapshot(`
      "digraph "n\\"\\\\" {
        rankdir=LR;
        node [shape=box];
        "a\\"]; \\\\" [color=goldenrod, tooltip="pending"];
        "<b>#" [color=goldenrod, tooltip="pending"];
        "a\\"]; \\\\" -> "<b>#";
      }
      "
    `);
    expect(toMermaid(steps)).toMatchInlineSnapshot(`
      "flowchart LR
        s0["a#34;]; #92;"]:::pending
        s1["#60;b#62;#35;"]:::pending
        s0 --> s1
        classDef pending stroke:goldenrod
      "
    `);
  });
});
