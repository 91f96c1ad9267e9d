import type { JobState } from '../core/job.js';
import { addAll, greatest } from '../core/long-lists.js';
import { type Paint, printable } from '../core/paint.js';
import type { RunIf } from '../core/workflow.js';
import { busesInto, type LaidStep, type Layer, layersOf, layOut, type Place } from './graph-layout.js';
import { STATE_STYLES } from './job-text.js';
import { plural } from './output.js';
import { textWidth, truncate } from './text-width.js';

/** Graphs as text: drawn for a terminal, and in the languages of Graphviz and Mermaid. */

/** A step as it is drawn. */
export interface DrawnStep extends LaidStep {
  readonly state: JobState;
  readonly runIf: RunIf;
  /** The step of `after` that it does not wait for, but was added by. */
  readonly adder?: string | undefined;
}

/** How a graph is drawn. */
export interface DrawingOptions {
  readonly paint: Paint;
  /** The width of the terminal; undefined where everything may be as wide as it is. */
  readonly width?: number | undefined;
  /** Whether the steps have not run and so have no states. */
  readonly isPlan?: boolean;
}

const SYMBOLS: Readonly<Record<JobState, string>> = {
  blocked: '○',
  pending: '◌',
  running: '●',
  succeeded: '✓',
  failed: '✗',
  cancelled: '⊘',
  skipped: '-',
};

/** Larger graphs are not drawn step by step, because nobody could follow the lines. */
const MOST_DRAWN_STEPS = 80;
const MOST_LINES_BETWEEN = 12;

/** The graph in layers with the lines between its steps; what is too large or too wide is summarised by layer. */
export function drawGraph(steps: readonly DrawnStep[], options: DrawingOptions): string {
  const drawing = steps.length <= MOST_DRAWN_STEPS ? drawSteps(steps, options) : null;
  return `${drawing ?? summarise(steps, options)}${options.isPlan ? '' : `\n${legend(steps, options)}`}`;
}

function labelOf({ name, state }: DrawnStep): string {
  return `${SYMBOLS[state]} ${printable(name)}`;
}

function drawSteps(steps: readonly DrawnStep[], { paint, width }: DrawingOptions): string | null {
  const labels = steps.map(labelOf);
  const layers = layOut(steps, (step) => textWidth(labels[step]!));
  const needed = greatest(
    layers.flatMap(({ places }) => places.map(({ column, width: own }) => column + own)),
    0,
  );
  if (width !== undefined && needed > width) return null;
  const lines: string[] = [];
  for (const [index, layer] of layers.entries()) {
    const above = index === 0 ? [] : linesAbove(layer);
    if (above.length > MOST_LINES_BETWEEN) return null;
    addAll(lines, above);
    lines.push(lineOf(layer.places, (step) => paint(STATE_STYLES[steps[step]!.state], labels[step]!)));
  }
  return lines.map((line) => `${line}\n`).join('');
}

function lineOf(row: readonly Place[], painted: (step: number) => string): string {
  let line = '';
  let at = 0;
  for (const { step, column, width } of row) {
    line += ' '.repeat(column - at) + (step === null ? '│' : painted(step));
    at = column + width;
  }
  return line;
}

/** A bus as it is drawn: from above in some columns, a row from side to side, down in other columns. */
interface Line {
  readonly from: ReadonlySet<number>;
  readonly to: ReadonlySet<number>;
  readonly left: number;
  readonly right: number;
  row: number;
}

const LEFT = 1;
const RIGHT = 2;
const UP = 4;
const DOWN = 8;
const STROKES: Readonly<Record<number, string>> = {
  [UP | DOWN]: '│',
  [LEFT | RIGHT]: '─',
  [UP | RIGHT]: '└',
  [UP | LEFT]: '┘',
  [DOWN | RIGHT]: '┌',
  [DOWN | LEFT]: '┐',
  [UP | DOWN | RIGHT]: '├',
  [UP | DOWN | LEFT]: '┤',
  [LEFT | RIGHT | UP]: '┴',
  [LEFT | RIGHT | DOWN]: '┬',
  [LEFT | RIGHT | UP | DOWN]: '┼',
};

/** The lines above a layer. Where two of them cross, the one from side to side is broken. */
function linesAbove(layer: Layer): string[] {
  const lines = drawnBuses(layer);
  const height = Math.max(1, arrangeLines(lines));
  const width = greatest(
    lines.map(({ right }) => right + 1),
    0,
  );
  const cells = Array.from({ length: height }, () => new Uint8Array(width));
  for (const { from, to, row } of lines) {
    for (const column of from) fill(cells, column, 0, row - 1);
    for (const column of to) fill(cells, column, row + 1, height - 1);
  }
  for (const { from, to, left, right, row } of lines) {
    const cellsOfRow = cells[row]!;
    for (let column = left; column <= right; column++) {
      const ends = (from.has(column) ? UP : 0) | (to.has(column) ? DOWN : 0);
      // Another line passes here from above to below.
      if (ends === 0 && cellsOfRow[column] !== 0) continue;
      cellsOfRow[column] = ends | (column > left ? LEFT : 0) | (column < right ? RIGHT : 0);
    }
  }
  return cells.map((line) =>
    Array.from(line, (bits) => STROKES[bits] ?? ' ')
      .join('')
      .trimEnd(),
  );
}

function fill(cells: readonly Uint8Array[], column: number, from: number, to: number): void {
  for (let row = from; row <= to; row++) cells[row]![column] = UP | DOWN;
}

function drawnBuses({ places, buses }: Layer): Line[] {
  const entries = new Map(places.map((each) => [each, busesInto(each, buses)]));
  return buses.map((bus) => {
    const from = new Set(bus.from.map(({ column }) => column));
    const to = new Set(bus.to.map((each) => each.column + entries.get(each)!.indexOf(bus)));
    const columns = [...from, ...to].sort((a, b) => a - b);
    return { from, to, left: columns[0]!, right: columns[columns.length - 1]!, row: 0 };
  });
}

/** Gives each line a row in which it meets no other; returns how many rows there are. */
function arrangeLines(lines: readonly Line[]): number {
  const ends: number[] = [];
  for (const line of [...lines].sort((a, b) => a.left - b.left)) {
    let row = ends.findIndex((end) => end < line.left - 1);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = line.right;
    line.row = row;
  }
  return ends.length;
}

/** How many steps of each state each layer has. */
function summarise(steps: readonly DrawnStep[], { paint, width }: DrawingOptions): string {
  const layers = layersOf(steps);
  const count = greatest(layers, 0) + 1;
  const byLayer: DrawnStep[][] = Array.from({ length: count }, () => []);
  for (const [step, layer] of layers.entries()) byLayer[layer]!.push(steps[step]!);
  const shown = count <= MOST_DRAWN_STEPS ? count : MOST_DRAWN_STEPS / 2;
  const lines = byLayer.map((layer, index) =>
    layerLine(index + 1, String(count).length, layer, paint, width),
  );
  if (count <= MOST_DRAWN_STEPS) return lines.join('');
  return [...lines.slice(0, shown), `… ${count - 2 * shown} more layers …\n`, ...lines.slice(-shown)].join(
    '',
  );
}

function layerLine(
  number: number,
  digits: number,
  layer: readonly DrawnStep[],
  paint: Paint,
  width = Number.POSITIVE_INFINITY,
): string {
  const counts = countsOf(layer);
  const [only] = layer;
  const head = `${String(number).padStart(digits)}  `;
  const tail = layer.length === 1 ? only!.name : plural(layer.length, 'step');
  const room = Math.max(8, width - head.length);
  if (layer.length === 1)
    return `${head}${paint(STATE_STYLES[only!.state], truncate(labelOf(only!), room))}\n`;
  const states = counts.map(([state, count]) => paint(STATE_STYLES[state], `${SYMBOLS[state]} ${count}`));
  return `${head}${tail}: ${states.join('  ')}\n`;
}

function countsOf(steps: readonly DrawnStep[]): (readonly [JobState, number])[] {
  const counts = new Map<JobState, number>();
  for (const { state } of steps) counts.set(state, (counts.get(state) ?? 0) + 1);
  return (Object.keys(SYMBOLS) as JobState[]).flatMap((state) => {
    const count = counts.get(state);
    return count === undefined ? [] : [[state, count] as const];
  });
}

function legend(steps: readonly DrawnStep[], { paint }: DrawingOptions): string {
  const states = countsOf(steps).map(([state, count]) =>
    paint(STATE_STYLES[state], `${SYMBOLS[state]} ${count} ${state}`),
  );
  return `${states.join('  ')}\n`;
}

const COLOURS: Readonly<Record<JobState, string>> = {
  blocked: 'gray',
  pending: 'goldenrod',
  running: 'deepskyblue',
  succeeded: 'forestgreen',
  failed: 'crimson',
  cancelled: 'gray',
  skipped: 'lightgray',
};

/** The graph in the language of Graphviz. */
export function toDot(name: string, steps: readonly DrawnStep[]): string {
  const nodes = steps.map(
    ({ name: step, state }) => `  ${quoted(step)} [color=${COLOURS[state]}, tooltip=${quoted(state)}];\n`,
  );
  const edges = steps.flatMap(({ name: step, after, runIf, adder }) =>
    after.map((parent) => {
      const label = runIf === 'all-succeeded' ? '' : ` [label=${quoted(runIf)}]`;
      const look = parent === adder ? ' [label="adds", style=dashed]' : label;
      return `  ${quoted(parent)} -> ${quoted(step)}${look};\n`;
    }),
  );
  return `digraph ${quoted(name)} {\n  rankdir=LR;\n  node [shape=box];\n${nodes.join('')}${edges.join('')}}\n`;
}

/** A text of Graphviz; without the backslash, which begins an escape there, it could end the text. */
function quoted(text: string): string {
  return `"${printable(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** The graph in the language of Mermaid. Steps get ids of their own, because some names are words of the language. */
export function toMermaid(steps: readonly DrawnStep[]): string {
  const idOf = new Map(steps.map(({ name }, index) => [name, `s${index}`]));
  const nodes = steps.map(({ name, state }) => `  ${idOf.get(name)}["${entities(name)}"]:::${state}\n`);
  const edges = steps.flatMap(({ name, after, runIf, adder }) =>
    after.map((parent) => {
      const waits = runIf === 'all-succeeded' ? '-->' : `-- ${runIf} -->`;
      const arrow = parent === adder ? '-. adds .->' : waits;
      return `  ${idOf.get(parent)} ${arrow} ${idOf.get(name)}\n`;
    }),
  );
  const used = countsOf(steps).map(([state]) => `  classDef ${state} stroke:${COLOURS[state]}\n`);
  return `flowchart LR\n${nodes.join('')}${edges.join('')}${used.join('')}`;
}

function entities(text: string): string {
  return printable(text).replace(/[#"<>&\\]/g, (character) => `#${character.charCodeAt(0)};`);
}
