import type { Ability } from './ability.js';
import type { NeedsInfo } from './directory.js';

/**
 * Finds the needs that a worker may be able to meet without iterating over all of them.
 *
 * Needs are indexed by their target, their handler, and one of their labels: the one with the fewest needs so far. A
 * worker is then compared only with needs whose indexed label it has, so thousands of label sets that no worker has
 * cost nothing.
 */
export class NeedsIndex {
  private readonly groups = new Map<string, Set<NeedsInfo>>();
  private readonly keys = new Map<number, string>();
  /** The number of needs per handler. A worker may list ten thousand tasks, of which few have jobs. */
  private readonly perHandler = new Map<string, number>();

  add(needs: NeedsInfo): void {
    if (this.keys.has(needs.id)) return;
    let best: string | undefined;
    const handler = handlerKey(needs);
    for (const key of keysOf(needs.target, handler, Object.entries(needs.labels))) {
      if (best === undefined || this.sizeOf(key) < this.sizeOf(best)) best = key;
    }
    const ofHandler = keyOf(needs.target, handler);
    const key = best ?? ofHandler;
    const group = this.groups.get(key);
    if (group) group.add(needs);
    else this.groups.set(key, new Set([needs]));
    this.keys.set(needs.id, key);
    this.perHandler.set(ofHandler, (this.perHandler.get(ofHandler) ?? 0) + 1);
  }

  remove(needs: NeedsInfo): void {
    const key = this.keys.get(needs.id);
    if (key === undefined) return;
    this.keys.delete(needs.id);
    const group = this.groups.get(key)!;
    group.delete(needs);
    if (group.size === 0) this.groups.delete(key);
    const handler = keyOf(needs.target, handlerKey(needs));
    const left = this.perHandler.get(handler)! - 1;
    if (left === 0) this.perHandler.delete(handler);
    else this.perHandler.set(handler, left);
  }

  /** A superset of the needs that workers with this ability can meet. */
  *candidates({ targets, tasks, labels }: Ability): Generator<NeedsInfo> {
    const pairs = Object.entries(labels);
    for (const target of targets) {
      for (const handler of target === 'handler' ? tasks : ['']) {
        if (!this.perHandler.has(keyOf(target, handler))) continue;
        yield* this.groups.get(keyOf(target, handler)) ?? [];
        for (const key of keysOf(target, handler, pairs)) yield* this.groups.get(key) ?? [];
      }
    }
  }

  private sizeOf(key: string): number {
    return this.groups.get(key)?.size ?? 0;
  }
}

/** The handler that a worker must have; for other targets workers meet the needs whatever stands there. */
function handlerKey({ target, handler }: NeedsInfo): string {
  return target === 'handler' ? handler : '';
}

/** The separator occurs in no target, handler or label name. */
function keyOf(target: string, handler: string): string {
  return `${target}\n${handler}`;
}

function keysOf(target: string, handler: string, labels: readonly [string, string][]): string[] {
  return labels.map(([name, value]) => `${keyOf(target, handler)}\n${name}\n${value}`);
}
