import { byIndex } from './batch-statement.js';

/**
 * The edges of graphs. Those of a submission are lists of ids in the rows of its steps, which never change: rows of their own
 * would cost more than the steps. Those of steps that are added later are rows, and so are all edges of workflows that an
 * older program stored. A step may have edges of both kinds, but no edge is of both.
 */

/** A select of the steps that wait for the step, as `id`; for LATERAL. */
export function childrenOf(step: string): string {
  return `SELECT unnest(g.child_ids) AS id FROM punctual.steps g WHERE ${byIndex('g.id', step)}
      UNION ALL SELECT e.child FROM punctual.edges e WHERE ${byIndex('e.parent', step)}`;
}

/** A select of the steps that the step waits for, as `id`; for LATERAL. */
export function parentsOf(step: string): string {
  return `SELECT unnest(g.parent_ids) AS id FROM punctual.steps g WHERE ${byIndex('g.id', step)}
      UNION ALL SELECT e.parent FROM punctual.edges e WHERE ${byIndex('e.child', step)}`;
}

/** Pairs of places of steps. */
export interface PlacedEdges {
  readonly parents: readonly number[];
  readonly children: readonly number[];
}

/** The lists of a submission as they are sent: one after the other, and where those of each step begin and end. */
export interface EdgeLists {
  /** Places of steps, in the order of their ids inside each list. */
  readonly places: readonly number[];
  /** For each step four numbers, counted from one: the first and the last place of its parents, and of its children. */
  readonly bounds: readonly number[];
}

/**
 * The lists of all steps. Neighbours that have the same list share it: in a wide graph thousands of steps have the same
 * parents and the same children.
 */
export function edgeLists(ids: readonly string[], { parents, children }: PlacedEdges): EdgeLists {
  const above = grouped(ids.length, children, parents);
  const below = grouped(ids.length, parents, children);
  const places: number[] = [];
  const [parentList, childList] = [new LastList(above, ids, places), new LastList(below, ids, places)];
  const bounds = new Array<number>(4 * ids.length);
  for (let step = 0; step < ids.length; step++) {
    parentList.put(step);
    childList.put(step);
    bounds[4 * step] = parentList.from;
    bounds[4 * step + 1] = parentList.to;
    bounds[4 * step + 2] = childList.from;
    bounds[4 * step + 3] = childList.to;
  }
  return { places, bounds };
}

/** What belongs to each of so many steps: the values from one offset to the next. */
interface Groups {
  readonly offsets: Int32Array;
  readonly values: Int32Array;
}

function grouped(steps: number, by: readonly number[], wanted: readonly number[]): Groups {
  const offsets = new Int32Array(steps + 1);
  for (const step of by) offsets[step + 1]! += 1;
  for (let step = 0; step < steps; step++) offsets[step + 1]! += offsets[step]!;
  const next = offsets.slice();
  const values = new Int32Array(wanted.length);
  for (let i = 0; i < by.length; i++) {
    const step = by[i]!;
    values[next[step]!] = wanted[i]!;
    next[step]! += 1;
  }
  return { offsets, values };
}

/** Puts the lists of steps one after the other, but for one that is the same as the last. */
class LastList {
  /** Where the last list stands, counted from one. An empty list ends before it begins. */
  from = 1;
  to = 0;
  /** Where it is among the values. */
  private begin = 0;
  private end = 0;

  constructor(
    private readonly groups: Groups,
    private readonly ids: readonly string[],
    private readonly places: number[],
  ) {}

  put(step: number): void {
    const { offsets, values } = this.groups;
    const [begin, end] = [offsets[step]!, offsets[step + 1]!];
    if (this.isLast(begin, end)) return;
    this.begin = begin;
    this.end = end;
    this.from = this.places.length + 1;
    const list = values.subarray(begin, end);
    const { ids } = this;
    // Ids are mostly made in the order of the steps.
    for (const place of isInOrder(list, ids) ? list : [...list].sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1)))
      this.places.push(place);
    this.to = this.places.length;
  }

  private isLast(begin: number, end: number): boolean {
    if (end - begin !== this.end - this.begin) return false;
    const { values } = this.groups;
    for (let i = begin, last = this.begin; i < end; i++, last++) if (values[i] !== values[last]) return false;
    return true;
  }
}

function isInOrder(list: Int32Array, ids: readonly string[]): boolean {
  for (let i = 1; i < list.length; i++) if (ids[list[i]!]! < ids[list[i - 1]!]!) return false;
  return true;
}
