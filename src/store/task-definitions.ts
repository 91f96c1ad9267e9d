import type { Clock } from '../core/clock.js';
import { rulesOfStored } from '../core/parse-task.js';
import { NO_TASKS, type TaskLookup, type TaskRules } from '../core/task-defaults.js';
import { TimeSlice } from '../core/time-slice.js';
import type { Queryable } from './database.js';
import { readTaskChanges, readTasks } from './tasks.js';

/** How old the knowledge of what has changed may be, counted from when the read was sent. */
const MAX_AGE_MS = 1_000;
/** From this age on it is read again ahead of need, so that submissions under load do not wait for it. */
const RENEW_AFTER_MS = 700;
/** Tenants, or definitions, that one statement reads. */
const PORTION = 1_000;
/**
 * Bounds of what is kept; the bytes are those of the texts, and their objects take several times as much. Names without a
 * definition are kept as well: they are asked for as often.
 */
const MAX_KNOWN = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** About what an entry takes beside its text. */
const ENTRY_BYTES = 256;

/** A definition that was read, or that there is none of this name. */
interface Known {
  /** The change of the tenant's definitions up to which this holds. */
  readonly version: number;
  readonly rules: TaskRules | null;
  readonly bytes: number;
}

/**
 * The definitions of tasks as a node knows them. A node that takes submissions reads at most once a second which tenants
 * have changed theirs, and a definition when it is first needed after that; one without traffic reads nothing. Tenants
 * without definitions cost nothing beyond that.
 */
export class TaskDefinitions {
  /** The tenants that have definitions, with the number of their last change. */
  private readonly tenants = new Map<string, number>();
  private readonly known = new Map<string, Known>();
  private readonly loading = new Map<string, Promise<ReadonlyMap<string, TaskRules>>>();
  /** Changes made through this node that no read has shown yet. */
  private readonly ownChanges = new Map<string, number>();
  private bytes = 0;
  /** Every change up to this number is known. */
  private since = 0;
  private sentAt = Number.NEGATIVE_INFINITY;
  private reading: Promise<void> | null = null;

  constructor(
    private readonly db: Queryable,
    private readonly clock: Pick<Clock, 'steady'>,
  ) {}

  /** The definitions of these names of a tenant; at once if they are known and the knowledge is fresh. */
  find(tenant: string, names: () => readonly string[]): TaskLookup | Promise<TaskLookup> {
    const age = this.clock.steady() - this.sentAt;
    if (age >= MAX_AGE_MS) return this.findFresh(tenant, names);
    // A failure shows when the knowledge is too old.
    if (age >= RENEW_AFTER_MS) this.renew().catch(() => undefined);
    return this.tenants.has(tenant) ? this.lookUp(tenant, names()) : NO_TASKS;
  }

  /** A change that was made through this node holds here at once. */
  changed(tenant: string, { version, tasks }: { readonly version: number; readonly tasks: number }): void {
    if (version <= Math.max(this.tenants.get(tenant) ?? 0, this.ownChanges.get(tenant) ?? 0, this.since))
      return;
    // Changes of others before it may not be known yet, so `since` stays.
    this.ownChanges.set(tenant, version);
    this.note(tenant, version, tasks);
  }

  private async findFresh(tenant: string, names: () => readonly string[]): Promise<TaskLookup> {
    await this.renew();
    return this.tenants.has(tenant) ? this.lookUp(tenant, names()) : NO_TASKS;
  }

  /** Reads what has changed; those who ask meanwhile share the read. */
  private renew(): Promise<void> {
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async read(): Promise<void> {
    const sentAt = this.clock.steady();
    for (;;) {
      const { last, tenants } = await readTaskChanges(this.db, this.since, PORTION);
      if (last < this.since) {
        // The database was restored from an older copy: nothing that is known need be true.
        this.forget();
        continue;
      }
      for (const { tenant, version, tasks } of tenants) {
        this.since = version;
        const own = this.ownChanges.get(tenant) ?? 0;
        // The read may have been sent before a change that was made here.
        if (own > version) continue;
        this.ownChanges.delete(tenant);
        this.note(tenant, version, tasks);
      }
      if (tenants.length < PORTION) break;
    }
    this.sentAt = sentAt;
  }

  private note(tenant: string, version: number, tasks: number): void {
    if (tasks > 0) this.tenants.set(tenant, version);
    else this.tenants.delete(tenant);
  }

  private forget(): void {
    this.since = 0;
    this.tenants.clear();
    this.ownChanges.clear();
    this.known.clear();
    this.bytes = 0;
  }

  private lookUp(tenant: string, names: readonly string[]): TaskLookup | Promise<TaskLookup> {
    const version = this.tenants.get(tenant)!;
    const found = new Map<string, TaskRules>();
    const missing: string[] = [];
    for (const name of names) {
      const known = this.known.get(keyOf(tenant, name));
      if (known?.version !== version) missing.push(name);
      else if (known.rules) found.set(name, known.rules);
    }
    if (missing.length === 0) return found;
    return this.load(tenant, version, missing, found);
  }

  private async load(
    tenant: string,
    version: number,
    missing: readonly string[],
    found: Map<string, TaskRules>,
  ): Promise<TaskLookup> {
    const keys = missing.map((name) => `${version} ${keyOf(tenant, name)}`);
    const unread = missing.filter((_, i) => !this.loading.has(keys[i]!));
    if (unread.length > 0) this.startReading(tenant, version, unread);
    const reads = keys.map((key) => this.loading.get(key)!);
    for (const [i, read] of (await Promise.all(reads)).entries()) {
      const rules = read.get(missing[i]!);
      if (rules) found.set(rules.name, rules);
    }
    return found;
  }

  /** Reads definitions; those who need one of them meanwhile wait for it. */
  private startReading(tenant: string, version: number, names: readonly string[]): void {
    const keys = names.map((name) => `${version} ${keyOf(tenant, name)}`);
    const reading = this.readDefinitions(tenant, version, names);
    for (const key of keys) this.loading.set(key, reading);
    const over = () => {
      for (const key of keys) this.loading.delete(key);
    };
    reading.then(over, over);
  }

  private async readDefinitions(
    tenant: string,
    version: number,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, TaskRules>> {
    const read = new Map<string, TaskRules>();
    const slice = new TimeSlice();
    for (let from = 0; from < names.length; from += PORTION) {
      const portion = names.slice(from, from + PORTION);
      const rows = await readTasks(this.db, tenant, portion);
      const texts = new Map(rows.map(({ name, definition }) => [name, definition]));
      for (const name of portion) {
        const text = texts.get(name);
        const rules = text === undefined ? null : rulesOfStored(name, text);
        if (rules) read.set(name, rules);
        this.keep(keyOf(tenant, name), { version, rules, bytes: (text?.length ?? 0) + ENTRY_BYTES });
        if (slice.isOver) await slice.next();
      }
    }
    return read;
  }

  private keep(key: string, known: Known): void {
    this.drop(key);
    this.known.set(key, known);
    this.bytes += known.bytes;
    for (const oldest of this.known.keys()) {
      if (this.known.size <= MAX_KNOWN && this.bytes <= MAX_BYTES) return;
      this.drop(oldest);
    }
  }

  private drop(key: string): void {
    const known = this.known.get(key);
    if (!known) return;
    this.known.delete(key);
    this.bytes -= known.bytes;
  }
}

/** Neither tenants nor names contain spaces. */
const keyOf = (tenant: string, name: string): string => `${tenant} ${name}`;
