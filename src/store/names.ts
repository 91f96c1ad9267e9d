import { createHash } from 'node:crypto';
import type { Needs } from '../core/submission.js';
import { type Queryable, run, type Statement } from './database.js';

/** Names of queues and needs of jobs, and the small integers that stand for them in the hot table. */

export interface QueueRow {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  readonly created_at: number;
  readonly weight: number;
  readonly concurrency: number | null;
  readonly key_concurrency: number;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
  /** When the queue's bucket will be full again. */
  readonly full_at: number;
}

export interface NeedsRow {
  readonly id: number;
  readonly tenant: string;
  readonly target: string;
  readonly handler: string;
  readonly labels: string;
}

const ADD_QUEUES: Statement = {
  name: 'add-queues',
  text: `
    INSERT INTO punctual.queues (tenant, name, created_at)
    SELECT DISTINCT u.tenant, u.name, $3::bigint FROM unnest($1::text[], $2::text[]) u(tenant, name)
    WHERE NOT EXISTS (SELECT 1 FROM punctual.queues q WHERE q.tenant = u.tenant AND q.name = u.name)
    ORDER BY 1, 2
    ON CONFLICT (tenant, name) DO NOTHING`,
};

const FIND_QUEUES: Statement = {
  name: 'find-queues',
  text: `
    SELECT q.id, q.tenant, q.name
    FROM unnest($1::text[], $2::text[]) u(tenant, name)
    JOIN punctual.queues q ON q.tenant = u.tenant AND q.name = u.name`,
};

const ADD_NEEDS: Statement = {
  name: 'add-needs',
  text: `
    INSERT INTO punctual.needs (signature, tenant, target, handler, labels)
    SELECT u.signature, u.tenant, u.target, u.handler, u.labels
    FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[]) u(signature, tenant, target, handler, labels)
    WHERE NOT EXISTS (SELECT 1 FROM punctual.needs n WHERE n.signature = u.signature)
    ORDER BY 1
    ON CONFLICT (signature) DO NOTHING`,
};

const FIND_NEEDS: Statement = {
  name: 'find-needs',
  text: `
    SELECT u.place, n.id FROM unnest($1::bytea[]) WITH ORDINALITY u(signature, place)
    JOIN punctual.needs n ON n.signature = u.signature`,
};

/** Labels in one canonical text, so that the order in which a user wrote them makes no difference. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  const names = Object.keys(labels);
  if (names.length === 0) return '';
  return JSON.stringify(names.sort().map((name) => [name, labels[name]]));
}

/** The labels that `labelsText` wrote. */
export function textLabels(text: string): Readonly<Record<string, string>> {
  return text === '' ? {} : Object.fromEntries(JSON.parse(text) as [string, string][]);
}

/** What names a job uses; asked for in bulk. */
export interface Named {
  readonly tenant: string;
  readonly queue: string;
  readonly needs: Needs;
}

/** Whether two use the same names, as far as can be told at once: jobs of a bulk mostly share their needs. */
function isSame(a: Named, b: Named): boolean {
  return a.needs === b.needs && a.queue === b.queue && a.tenant === b.tenant;
}

/** Needs in one line of text; neither a tenant nor a target nor a handler can hold its separator. */
function needsText({ tenant, needs }: Named): string {
  return `${tenant}\n${needs.target}\n${needs.handler}\n${labelsText(needs.labels)}`;
}

/** The digest under which needs are stored: labels may be longer than an index can hold. */
function signatureOf({ tenant, needs }: Named): Buffer {
  const whole = JSON.stringify([tenant, needs.target, needs.handler, labelsText(needs.labels)]);
  return createHash('sha256').update(whole).digest();
}

/** Both maps are never emptied: names are few, and an id once given is never given to another name. */
export class Names {
  private readonly queues = new Map<string, number>();
  private readonly needs = new Map<string, number>();

  constructor(private readonly db: Queryable) {}

  /** The ids for each of the given, made where they do not exist yet. */
  async resolve(named: readonly Named[], now: number): Promise<{ queue: number; needs: number }[]> {
    const first = named[0];
    if (first && named.every((each) => isSame(each, first))) {
      const known = await this.resolveEach([first], now);
      return named.map(() => known[0]!);
    }
    return this.resolveEach(named, now);
  }

  private async resolveEach(
    named: readonly Named[],
    now: number,
  ): Promise<{ queue: number; needs: number }[]> {
    const queueKeys = named.map((each) => `${each.tenant}\n${each.queue}`);
    const needsKeys = named.map(needsText);
    if (!queueKeys.every((key) => this.queues.has(key))) await this.learnQueues(queueKeys, now);
    if (!needsKeys.every((key) => this.needs.has(key))) await this.learnNeeds(named, needsKeys);
    return named.map((_, i) => ({
      queue: this.queues.get(queueKeys[i]!)!,
      needs: this.needs.get(needsKeys[i]!)!,
    }));
  }

  private async learnQueues(keys: readonly string[], now: number): Promise<void> {
    const unknown = [...new Set(keys)].filter((key) => !this.queues.has(key)).map((key) => key.split('\n'));
    const columns = [unknown.map((parts) => parts[0]), unknown.map((parts) => parts[1])];
    await run(this.db, ADD_QUEUES, [...columns, now]);
    for (const row of await run<Pick<QueueRow, 'id' | 'tenant' | 'name'> & Record<string, unknown>>(
      this.db,
      FIND_QUEUES,
      columns,
    )) {
      this.queues.set(`${row.tenant}\n${row.name}`, row.id);
    }
  }

  private async learnNeeds(named: readonly Named[], keys: readonly string[]): Promise<void> {
    const unknown = new Map<string, Named>();
    named.forEach((each, i) => {
      if (!this.needs.has(keys[i]!)) unknown.set(keys[i]!, each);
    });
    const all = [...unknown.values()];
    const signatures = all.map(signatureOf);
    await run(this.db, ADD_NEEDS, [
      signatures,
      all.map((each) => each.tenant),
      all.map((each) => each.needs.target),
      all.map((each) => each.needs.handler),
      all.map((each) => labelsText(each.needs.labels)),
    ]);
    const found = await run<{ place: number; id: number }>(this.db, FIND_NEEDS, [signatures]);
    const unknownKeys = [...unknown.keys()];
    for (const { place, id } of found) this.needs.set(unknownKeys[place - 1]!, id);
  }
}
