import { greatest } from '../core/long-lists.js';

/**
 * Where the steps of a graph stand in a drawing: in layers from top to bottom, every step below its parents. An edge over
 * several layers has a place of its own in each layer between, so that all lines lead from one layer to the next.
 *
 * Places that lead to the same places of the next layer share a bus: lines from all of them meet in a line from side to
 * side, from which lines lead down to all the others. Each bus enters a place in a column of its own, and no column belongs
 * to two buses, so lines of different buses may cross but never meet.
 */

/** A step as it is laid out. */
export interface LaidStep {
  readonly name: string;
  readonly after: readonly string[];
}

/** A place in a layer: a step, or a line that passes through (`step` is null). */
export interface Place {
  readonly step: number | null;
  readonly width: number;
  /** Places in the layer above and below. */
  readonly parents: Place[];
  readonly children: Place[];
  /** Where lines leave it, and the first of the columns where lines enter it. */
  column: number;
}

/** Places of one layer that lead to the same places of the next. */
export interface Bus {
  readonly from: readonly Place[];
  readonly to: readonly Place[];
}

/** A layer, and the buses that lead to it from the layer above. */
export interface Layer {
  readonly places: readonly Place[];
  readonly buses: readonly Bus[];
}

/** Columns between two places of a layer. */
const GAP = 3;

/** The layer of each step: the length of the longest way to it. */
export function layersOf(steps: readonly LaidStep[]): number[] {
  const indexOf = new Map(steps.map(({ name }, index) => [name, index]));
  const parents = steps.map(({ after }) => after.flatMap((name) => indexOf.get(name) ?? []));
  const children: number[][] = steps.map(() => []);
  for (const [step, theirs] of parents.entries()) for (const parent of theirs) children[parent]!.push(step);
  const left = parents.map(({ length }) => length);
  const layers = steps.map(() => 0);
  const ready = [...steps.keys()].filter((step) => left[step] === 0);
  for (const step of ready) {
    for (const child of children[step]!) {
      layers[child] = Math.max(layers[child]!, layers[step]! + 1);
      left[child]! -= 1;
      if (left[child] === 0) ready.push(child);
    }
  }
  return layers;
}

/** All layers, with their places from the left to the right. */
export function layOut(steps: readonly LaidStep[], widthOf: (step: number) => number): Layer[] {
  const layers = layersOf(steps);
  const rows: Place[][] = Array.from({ length: greatest(layers, 0) + 1 }, () => []);
  const indexOf = new Map(steps.map(({ name }, index) => [name, index]));
  const places = steps.map((_, step) => place(step, widthOf(step)));
  for (const step of byLayer(layers)) {
    const row = layers[step]!;
    for (const name of steps[step]!.after) {
      const parent = indexOf.get(name);
      if (parent !== undefined) connect(places[parent]!, places[step]!, layers[parent]!, row, rows);
    }
    rows[row]!.push(places[step]!);
  }
  return arrange(rows);
}

function byLayer(layers: readonly number[]): number[] {
  return [...layers.keys()].sort((a, b) => layers[a]! - layers[b]!);
}

function place(step: number | null, width: number): Place {
  return { step, width, parents: [], children: [], column: 0 };
}

function connect(from: Place, to: Place, fromRow: number, toRow: number, rows: readonly Place[][]): void {
  let above = from;
  for (let row = fromRow + 1; row < toRow; row++) {
    const between = place(null, 1);
    link(above, between);
    rows[row]!.push(between);
    above = between;
  }
  link(above, to);
}

function link(parent: Place, child: Place): void {
  parent.children.push(child);
  child.parents.push(parent);
}

/** Puts the places of each layer below the middle of their parents, in the order of these. */
function arrange(rows: readonly Place[][]): Layer[] {
  let above: readonly Place[] = [];
  return rows.map((row) => {
    const middle = new Map(row.map((each) => [each, middleOf(each.parents)]));
    row.sort((a, b) => middle.get(a)! - middle.get(b)!);
    const buses = busesFrom(above);
    const owners = new Map(
      above.filter(({ children }) => children.length > 0).map((each) => [each.column, each]),
    );
    let free = 0;
    for (const each of row) {
      const entries = Math.max(1, busesInto(each, buses).length);
      let column = Math.max(free, middle.get(each)!);
      while (!mayStandAt(column, entries, each, owners)) column += 1;
      each.column = column;
      free = column + Math.max(each.width, entries) + GAP;
    }
    above = row;
    return { places: row, buses };
  });
}

/** The buses below a layer, those of its leftmost places first. */
function busesFrom(row: readonly Place[]): Bus[] {
  const numbers = new Map<Place, number>();
  for (const { children } of row)
    for (const child of children) numbers.set(child, numbers.get(child) ?? numbers.size);
  const sharing = new Map<string, { from: Place[]; to: readonly Place[] }>();
  for (const each of row) {
    if (each.children.length === 0) continue;
    const key = each.children
      .map((child) => numbers.get(child)!)
      .sort((a, b) => a - b)
      .join();
    const same = sharing.get(key);
    if (same) same.from.push(each);
    else sharing.set(key, { from: [each], to: each.children });
  }
  return [...sharing.values()];
}

/** The buses that enter a place, in the order of its columns for them. */
export function busesInto(place: Place, buses: readonly Bus[]): Bus[] {
  return buses.filter(({ to }) => to.includes(place));
}

function middleOf(parents: readonly Place[]): number {
  if (parents.length === 0) return 0;
  return Math.floor(parents.reduce((sum, { column }) => sum + column, 0) / parents.length);
}

/** Only a place with a single parent may stand right below a place from which lines lead down: below that parent. */
function mayStandAt(
  column: number,
  entries: number,
  { parents }: Place,
  owners: ReadonlyMap<number, Place>,
): boolean {
  for (let entry = column; entry < column + entries; entry++) {
    const owner = owners.get(entry);
    if (owner && (parents.length !== 1 || parents[0] !== owner)) return false;
  }
  return true;
}
