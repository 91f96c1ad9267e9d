import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import type { TaskDefinition } from '../core/task-definition.js';
import type { Queryable } from './database.js';
import { TaskDefinitions } from './task-definitions.js';

/** The tables of definitions, as far as a node reads them; it counts the reads, and can hold one back. */
class Tables {
  readonly reads: string[] = [];
  last = 0;
  failure: Error | null = null;
  private readonly tenants = new Map<string, { version: number; tasks: number }>();
  private readonly tasks = new Map<string, Map<string, TaskDefinition>>();
  private held: Promise<void> | null = null;

  define(tenant: string, name: string, definition: TaskDefinition | null) {
    const ofTenant = this.tasks.get(tenant) ?? new Map<string, TaskDefinition>();
    this.tasks.set(tenant, ofTenant);
    if (definition) ofTenant.set(name, definition);
    else ofTenant.delete(name);
    this.last += 1;
    const marked = { version: this.last, tasks: ofTenant.size };
    this.tenants.set(tenant, marked);
    return marked;
  }

  /** Holds back the answers to reads that are sent from now on; they are what was there when they were sent. */
  hold(): () => void {
    let release!: () => void;
    this.held = new Promise((resolve) => {
      release = resolve;
    });
    return () => {
      this.held = null;
      release();
    };
  }

  get db(): Queryable {
    const query = async ({ name, values }: { name: string; values: unknown[] }) => {
      this.reads.push(name);
      const rows = name === 'read-tasks' ? this.readTasks(values) : this.readChanges(values);
      await this.held;
      if (this.failure) throw this.failure;
      return { rows };
    };
    return { query } as unknown as Queryable;
  }

  private readTasks([tenant, names]: unknown[]) {
    const ofTenant = this.tasks.get(tenant as string);
    return (names as string[]).flatMap((name) => {
      const definition = ofTenant?.get(name);
      return definition ? [{ name, definition: JSON.stringify(definition) }] : [];
    });
  }

  private readChanges([since, limit]: unknown[]) {
    const changed = [...this.tenants]
      .map(([tenant, marked]) => ({ last: this.last, tenant: tenant as string | null, ...marked }))
      .filter(({ version }) => version > Number(since))
      .sort((a, b) => a.version - b.version)
      .slice(0, Number(limit));
    return changed.length > 0 ? changed : [{ last: this.last, tenant: null, version: null, tasks: null }];
  }
}

function open() {
  const tables = new Tables();
  const clock = new TestClock();
  const definitions = new TaskDefinitions(tables.db, clock);
  const queueOf = async (tenant: string, name = 'greet') =>
    (await definitions.find(tenant, () => [name])).get(name)?.definition.queue;
  return { tables, clock, definitions, queueOf };
}

describe('what a node knows of definitions', () => {
  it('is read when it is a second old, ahead of that under load, and never without a question', async () => {
    const { tables, clock, queueOf } = open();
    tables.define('a', 'greet', { queue: 'one' });
    expect(tables.reads).toEqual([]);
    expect(await queueOf('a')).toBe('one');
    expect(tables.reads).toEqual(['read-task-changes', 'read-tasks']);
    clock.advance(699);
    expect(await queueOf('a')).toBe('one');
    expect(tables.reads).toHaveLength(2);
    tables.define('a', 'greet', { queue: 'two' });
    clock.advance(1);
    // This one does not wait for the read that it begins.
    expect(await queueOf('a')).toBe('one');
    await new Promise((resolve) => setImmediate(resolve));
    expect(await queueOf('a')).toBe('two');
    clock.advance(60_000);
    expect(tables.reads.slice(2)).toEqual(['read-task-changes', 'read-tasks']);
  });

  it('answers at once about tenants without any', async () => {
    const { tables, definitions, queueOf } = open();
    tables.define('a', 'greet', { queue: 'one' });
    expect(await queueOf('b')).toBeUndefined();
    expect(definitions.find('b', () => ['greet'])).not.toBeInstanceOf(Promise);
    expect(tables.reads).toEqual(['read-task-changes']);
  });

  it('holds a change of its own at once, though a read was under way that does not show it', async () => {
    const { tables, clock, definitions, queueOf } = open();
    definitions.changed('a', tables.define('a', 'greet', { queue: 'one' }));
    const release = tables.hold();
    const asked = queueOf('b');
    definitions.changed('a', tables.define('a', 'greet', { queue: 'two' }));
    release();
    await asked;
    expect(await queueOf('a')).toBe('two');
    definitions.changed('a', tables.define('a', 'greet', null));
    expect(await queueOf('a')).toBeUndefined();
    clock.advance(1_000);
    expect(await queueOf('a')).toBeUndefined();
  });

  it('misses no change of others that came before one of its own', async () => {
    const { tables, clock, definitions, queueOf } = open();
    expect(await queueOf('b')).toBeUndefined();
    tables.define('b', 'greet', { queue: 'theirs' });
    definitions.changed('a', tables.define('a', 'greet', { queue: 'mine' }));
    clock.advance(1_000);
    expect(await queueOf('b')).toBe('theirs');
  });

  it('covers thousands of tenants, in portions', async () => {
    const { tables, queueOf } = open();
    for (let i = 0; i < 2_500; i++) tables.define(`t${i}`, 'greet', { queue: `q${i}` });
    expect(await queueOf('t2499')).toBe('q2499');
    expect(tables.reads.filter((name) => name === 'read-task-changes')).toHaveLength(3);
    expect(await queueOf('t0')).toBe('q0');
  });

  it('is bounded, and still right', async () => {
    const { tables, definitions } = open();
    const payloadSchema = { enum: ['x'.repeat(60_000)] };
    const names = Array.from({ length: 200 }, (_, i) => `task-${i}`);
    for (const name of names) tables.define('a', name, { queue: name, payloadSchema });
    for (let round = 0; round < 2; round++) {
      const found = await definitions.find('a', () => names);
      expect(names.map((name) => found.get(name)?.definition.queue)).toEqual(names);
    }
    const kept = (definitions as unknown as { bytes: number }).bytes;
    expect(kept).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(kept).toBeGreaterThan(4 * 1024 * 1024);
  });

  it('is read again after a read has failed', async () => {
    const { tables, clock, queueOf } = open();
    tables.define('a', 'greet', { queue: 'one' });
    tables.failure = new Error('gone');
    await expect(queueOf('a')).rejects.toThrow('gone');
    tables.failure = null;
    expect(await queueOf('a')).toBe('one');
    tables.define('a', 'greet', { queue: 'two' });
    clock.advance(800);
    tables.failure = new Error('gone again');
    // Knowledge that is fresh enough is used, though it could not be renewed.
    expect(await queueOf('a')).toBe('one');
    clock.advance(1_000);
    await expect(queueOf('a')).rejects.toThrow('gone again');
  });

  it('is forgotten when the database is older than it', async () => {
    const { tables, clock, queueOf } = open();
    for (const queue of ['one', 'two', 'three']) tables.define('a', 'greet', { queue });
    expect(await queueOf('a')).toBe('three');
    tables.last = 0;
    tables.define('a', 'greet', { queue: 'restored' });
    clock.advance(1_000);
    expect(await queueOf('a')).toBe('restored');
  });
});
