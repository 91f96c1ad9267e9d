/**
 * Where the steps of a graph are drawn: in levels by the longest way from the first steps, ordered within a level so that few
 * edges cross. Steps of one level that have the same steps before and behind them are drawn as one when there are many of them.
 */

/** A step as the layout needs it. */
export interface GraphStep {
  readonly name: string;
  readonly after: readonly string[];
}

/** What is drawn in one place: a step, or many that are alike. */
export interface GraphNode {
  readonly key: string;
  readonly names: readonly string[];
  readonly level: number;
  readonly x: number;
  readonly y: number;
}

export interface GraphEdge {
  readonly from: GraphNode;
  readonly to: GraphNode;
}

export interface GraphLayout {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly width: number;
  readonly height: number;
}

export const NODE_WIDTH = 168;
export const NODE_HEIGHT = 34;
const LEVEL_GAP = 64;
const NODE_GAP = 12;
/** So many steps that are alike are still drawn one by one. */
const MOST_ALIKE = 30;
const SWEEPS = 4;

interface Draft {
  readonly key: string;
  readonly names: string[];
  readonly parents: Set<Draft>;
  readonly children: Set<Draft>;
  level: number;
  /** The place within its level, and what it is sorted by. */
  order: number;
  y: number;
}

/** Lays out a graph from left to right. Steps that are not `apart` may be drawn as one. */
export function layOut(
  steps: readonly GraphStep[],
  apart: (name: string) => boolean = () => false,
): GraphLayout {
  const drafts = collapse(connect(steps), apart);
  const levels = levelsOf(drafts);
  for (let sweep = 0; sweep < SWEEPS; sweep++) sort(levels, sweep % 2 === 0);
  place(levels);
  return toLayout(drafts, levels);
}

function connect(steps: readonly GraphStep[]): Draft[] {
  const byName = new Map<string, Draft>();
  for (const { name } of steps)
    byName.set(name, {
      key: name,
      names: [name],
      parents: new Set(),
      children: new Set(),
      level: 0,
      order: 0,
      y: 0,
    });
  for (const { name, after } of steps) {
    const draft = byName.get(name)!;
    for (const each of after) {
      const parent = byName.get(each);
      if (parent) link(parent, draft);
    }
  }
  return [...byName.values()];
}

function link(parent: Draft, child: Draft): void {
  parent.children.add(child);
  child.parents.add(parent);
}

/** Makes one of many drafts that have the same parents and children. */
function collapse(drafts: readonly Draft[], apart: (name: string) => boolean): Draft[] {
  const ids = new Map(drafts.map((draft, i) => [draft, i]));
  const idsOf = (set: ReadonlySet<Draft>) => [...set].map((each) => ids.get(each)!).sort((a, b) => a - b);
  const alike = new Map<string, Draft[]>();
  for (const draft of drafts) {
    if (apart(draft.key)) continue;
    const shape = `${idsOf(draft.parents).join()}>${idsOf(draft.children).join()}`;
    const found = alike.get(shape);
    if (found) found.push(draft);
    else alike.set(shape, [draft]);
  }
  const gone = new Set<Draft>();
  for (const group of alike.values()) {
    if (group.length <= MOST_ALIKE) continue;
    const [first, ...others] = group;
    for (const other of others) {
      for (const name of other.names) first!.names.push(name);
      for (const parent of other.parents) parent.children.delete(other);
      for (const child of other.children) child.parents.delete(other);
      gone.add(other);
    }
  }
  return drafts.filter((draft) => !gone.has(draft));
}

function levelsOf(drafts: readonly Draft[]): Draft[][] {
  const open = new Map(drafts.map((draft) => [draft, draft.parents.size]));
  const ready = drafts.filter(({ parents }) => parents.size === 0);
  for (let i = 0; i < ready.length; i++) {
    const draft = ready[i]!;
    for (const child of draft.children) {
      child.level = Math.max(child.level, draft.level + 1);
      const left = open.get(child)! - 1;
      open.set(child, left);
      if (left === 0) ready.push(child);
    }
  }
  const levels: Draft[][] = [];
  for (const draft of ready) {
    levels[draft.level] ??= [];
    draft.order = levels[draft.level]!.push(draft) - 1;
  }
  return levels;
}

/** Orders each level by the mean place of the neighbours in the levels that were ordered before. */
function sort(levels: readonly Draft[][], isForward: boolean): void {
  const all = isForward ? levels : [...levels].reverse();
  for (const level of all) {
    const means = new Map(
      level.map((draft) => [draft, meanOrder(isForward ? draft.parents : draft.children, draft.order)]),
    );
    level.sort((a, b) => means.get(a)! - means.get(b)! || a.order - b.order);
    for (const [i, draft] of level.entries()) draft.order = i;
  }
}

function meanOrder(neighbours: ReadonlySet<Draft>, own: number): number {
  if (neighbours.size === 0) return own;
  let sum = 0;
  for (const { order } of neighbours) sum += order;
  return sum / neighbours.size;
}

/** Gives each its height: near the mean of its parents, without overlaps. */
function place(levels: readonly Draft[][]): void {
  const step = NODE_HEIGHT + NODE_GAP;
  for (const level of levels) {
    let least = Number.NEGATIVE_INFINITY;
    for (const draft of level) {
      const wanted = draft.parents.size === 0 ? draft.order * step : meanY(draft.parents);
      draft.y = Math.max(wanted, least);
      least = draft.y + step;
    }
    // What was pushed down pulls the level up by half, so that it stays around its parents.
    const last = level.at(-1)!;
    const pushed = last.parents.size === 0 ? 0 : (last.y - meanY(last.parents)) / 2;
    if (pushed > 0) for (const draft of level) draft.y -= pushed;
  }
}

function meanY(parents: ReadonlySet<Draft>): number {
  let sum = 0;
  for (const { y } of parents) sum += y;
  return sum / parents.size;
}

function toLayout(drafts: readonly Draft[], levels: readonly Draft[][]): GraphLayout {
  let top = Number.POSITIVE_INFINITY;
  let bottom = 0;
  for (const { y } of drafts) top = Math.min(top, y);
  const nodes = new Map<Draft, GraphNode>();
  for (const draft of drafts) {
    const { key, names, level } = draft;
    const y = draft.y - top;
    bottom = Math.max(bottom, y + NODE_HEIGHT);
    nodes.set(draft, { key, names, level, x: level * (NODE_WIDTH + LEVEL_GAP), y });
  }
  const edges: GraphEdge[] = [];
  for (const draft of drafts)
    for (const child of draft.children) edges.push({ from: nodes.get(draft)!, to: nodes.get(child)! });
  const width = Math.max(0, levels.length * (NODE_WIDTH + LEVEL_GAP) - LEVEL_GAP);
  return { nodes: [...nodes.values()], edges, width, height: bottom };
}
