import { createHash } from 'node:crypto';
import { uuidv7 } from './uuid.js';

/**
 * Entries of the audit: who did what, from where, when, and what it changed. An entry is written together with its effect. Later
 * one pass of the leader gives it its place in the chain of the shard: a sequence without gaps, the hash of the entry before it,
 * and its own hash.
 *
 * The hash is defined by the exported line, so that other programs can check it: SHA-256 over the bytes (UTF-8) of the line without
 * its last field, `"hash"`, and the comma before that. The line holds the hash of the line before it as `previous`; that of the
 * first is 64 zeros.
 */

/** Everything that the audit records. */
export const AUDIT_ACTIONS = [
  'tenant.create',
  'tenant.change',
  'key.create',
  'key.revoke',
  'key.rotate',
  'session.create',
  'secret.create',
  'secret.change',
  'secret.delete',
  'secret.rekey',
  'signing-secret.create',
  'signing-secret.delete',
  'queue.pause',
  'queue.resume',
  'queue.change',
  'cluster.pause',
  'cluster.resume',
  'schedule.create',
  'schedule.change',
  'schedule.pause',
  'schedule.resume',
  'schedule.run',
  'schedule.backfill',
  'schedule.delete',
  'schedule.prune',
  'job.cancel',
  'job.hold',
  'job.release',
  'job.retry',
  'job.change',
  'jobs.cancel',
  'jobs.hold',
  'jobs.release',
  'jobs.redrive',
  'jobs.delete',
  'batch.cancel',
  'batch.retry',
  'worker.drain',
  'origin.limit',
  'origin.unlimit',
  'origin.reset',
  'artifact.create',
  'artifact.upload',
  'artifact.delete',
  'task.create',
  'task.change',
  'task.delete',
  'definition.create',
  'definition.change',
  'definition.delete',
  'workflow.cancel',
  'workflow.hold',
  'workflow.release',
  'workflow.retry',
] as const;

/** One of the actions that the audit records. */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** `unknown` is an action that was begun and whose end was not recorded, because its leader died. */
export type AuditOutcome = 'done' | 'failed' | 'unknown';

/** What an action is about. */
export interface AuditSubject {
  readonly kind:
    | 'tenant'
    | 'key'
    | 'session'
    | 'secret'
    | 'secrets'
    | 'signing-secret'
    | 'queue'
    | 'cluster'
    | 'schedule'
    | 'job'
    | 'jobs'
    | 'worker'
    | 'task'
    | 'workflow'
    | 'definition'
    | 'batch'
    | 'origin'
    | 'artifact';
  /** The id or the name. */
  readonly name: string;
  /** Whose it is; null for what belongs to the operator. */
  readonly tenant: string | null;
}

/** An entry before it is in the chain. */
export interface AuditEntry {
  readonly id: string;
  readonly at: number;
  readonly tenant: string | null;
  readonly keyId: string | null;
  readonly keyName: string;
  readonly address: string | null;
  readonly requestId: string | null;
  readonly action: AuditAction;
  readonly kind: AuditSubject['kind'];
  readonly subject: string;
  /** JSON text. */
  readonly before: string | null;
  /** JSON text. */
  readonly after: string | null;
  readonly outcome: AuditOutcome;
}

/** Who acts, and from where. */
export interface AuditAuthor {
  readonly keyId: string | null;
  readonly keyName: string;
  readonly address: string | null;
  readonly requestId: string | null;
}

/** What an action changed: views of its subject, as values that can be written as JSON. */
export interface AuditChange {
  readonly before?: object | null;
  readonly after?: object | null;
  /** Default `done`: the entry is written with its effect. */
  readonly outcome?: AuditOutcome;
}

/** Makes an entry. */
export function auditEntry(
  author: AuditAuthor,
  at: number,
  action: AuditAction,
  { kind, name, tenant }: AuditSubject,
  { before = null, after = null, outcome = 'done' }: AuditChange = {},
): AuditEntry {
  const { keyId, keyName, address, requestId } = author;
  return {
    ...{ id: uuidv7(at), at: Math.floor(at), tenant, keyId, keyName, address, requestId, action, kind },
    ...{ subject: name, before: boundedText(before), after: boundedText(after), outcome },
  };
}

/** The most bytes of one view. */
const MAX_VIEW_BYTES = 16 * 1024;

/** The text of a view; of one that is too large, how large it was and its hash. */
export function boundedText(view: object | null): string | null {
  if (view === null) return null;
  const text = JSON.stringify(view);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_VIEW_BYTES) return text;
  return JSON.stringify({ leftOut: `${bytes} bytes`, sha256: sha256(text) });
}

/** What an entry holds in place of a payload or a secret. */
export function hashed(text: string | null): { readonly sha256: string } | null {
  return text === null ? null : { sha256: sha256(text) };
}

/** What an entry holds of a target. Others than handlers may have secrets, in headers or an environment. */
export function targetView(target: { readonly type?: unknown }): object {
  return target.type === 'handler' ? target : { type: target.type, ...hashed(JSON.stringify(target)) };
}

/** SHA-256 of a text, in hexadecimal digits. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** The place of an entry in the chain. */
export interface ChainLink {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
}

/** `previous` of the first entry. */
export const NO_HASH = '0'.repeat(64);

/** The text of an entry without its hash and the last brace, which is what the hash is made of. */
function unhashed(
  shard: number,
  entry: AuditEntry,
  sequence: number | null,
  previous: string | null,
): string {
  const fields = {
    ...{ shard, sequence, previous, id: entry.id, at: new Date(entry.at).toISOString() },
    ...{ tenant: entry.tenant, keyId: entry.keyId, keyName: entry.keyName, address: entry.address },
    ...{ requestId: entry.requestId, action: entry.action, kind: entry.kind, subject: entry.subject },
    outcome: entry.outcome,
  };
  return `${JSON.stringify(fields).slice(0, -1)},"before":${entry.before ?? 'null'},"after":${entry.after ?? 'null'}`;
}

/** The links of entries that are appended to a chain that ends with `head`. */
export function chain(
  shard: number,
  head: Pick<ChainLink, 'sequence' | 'hash'>,
  entries: readonly AuditEntry[],
): ChainLink[] {
  let { sequence, hash: previous } = head;
  return entries.map((entry) => {
    sequence += 1;
    const link = { sequence, previous, hash: sha256(`${unhashed(shard, entry, sequence, previous)}}`) };
    previous = link.hash;
    return link;
  });
}

/** An entry as one line of JSON: what the API shows and exports. */
export function auditLine(shard: number, entry: AuditEntry, link: ChainLink | null): string {
  const text = unhashed(shard, entry, link?.sequence ?? null, link?.previous ?? null);
  return `${text},"hash":${link === null ? 'null' : `"${link.hash}"`}}`;
}

/** An entry as the API shows it. */
export interface AuditView {
  readonly shard: number;
  /** The place in the chain; null until a pass of the leader has given it one. */
  readonly sequence: number | null;
  /** The hash of the entry before. */
  readonly previous: string | null;
  readonly id: string;
  readonly at: string;
  /** Whose the subject is; null for what belongs to the operator. */
  readonly tenant: string | null;
  readonly keyId: string | null;
  readonly keyName: string;
  /** Where the request came from. */
  readonly address: string | null;
  readonly requestId: string | null;
  readonly action: AuditAction;
  readonly kind: string;
  /** The id or name of the subject. */
  readonly subject: string;
  readonly outcome: AuditOutcome;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
  readonly hash: string | null;
}

/** Both ends of the chains, by shard. */
export interface AuditChainsView {
  readonly chains: readonly {
    readonly shard: number;
    readonly sequence: number;
    readonly hash: string;
    readonly removedSequence: number;
    readonly removedHash: string;
  }[];
}

const HASH_FIELD = /,"hash":"([0-9a-f]{64})"\}$/;

/** What is wrong with a chain. */
export interface ChainFault {
  readonly shard: number;
  /** The first sequence that is wrong. */
  readonly sequence: number;
  /** The id of the entry, if there is one. */
  readonly id: string | null;
  readonly problem: 'changed' | 'missing' | 'reordered' | 'unreadable';
  readonly detail: string;
}

/** The fields of a line that a check needs. */
interface CheckedLine {
  readonly shard: number;
  readonly sequence: number;
  readonly previous: string;
  readonly id: string;
}

/** Faults that a check keeps; a file that is no export has one per line. */
const MOST_FAULTS = 100;

/** Checks exported lines, in the order in which they come. */
export class ChainCheck {
  /** The first faults. */
  readonly faults: ChainFault[] = [];
  entries = 0;
  private readonly heads = new Map<number, Pick<ChainLink, 'sequence' | 'hash'>>();

  /**
   * Tells which entry of a shard retention has removed last. Without that, the first line of the shard is taken for the first
   * one that was kept.
   */
  begin(shard: number, anchor: Pick<ChainLink, 'sequence' | 'hash'>): void {
    this.heads.set(shard, anchor);
  }

  /** Checks the next line. */
  add(line: string): void {
    this.entries += 1;
    const parsed = readLine(line);
    const own = HASH_FIELD.exec(line);
    if (parsed === null || own === null) {
      const detail = `line ${this.entries} is not an entry of a chain`;
      this.note({ shard: 0, sequence: 0, id: null, problem: 'unreadable', detail });
      return;
    }
    const { shard, sequence, previous, id } = parsed;
    const hash = sha256(`${line.slice(0, own.index)}}`);
    const fault = (problem: ChainFault['problem'], detail: string) =>
      this.note({ shard, sequence, id, problem, detail });
    const head = this.heads.get(shard);
    const expected = head && head.sequence + 1;
    if (hash !== own[1]) fault('changed', `entry ${sequence} was changed: its hash is not that of its text`);
    else if (expected !== undefined && sequence > expected)
      fault('missing', `${missing(expected, sequence - 1)} before entry ${sequence}`);
    else if (expected !== undefined && sequence < expected)
      fault('reordered', `entry ${sequence} comes after entry ${expected - 1}`);
    else if (head === undefined && sequence === 1 && previous !== NO_HASH)
      fault('changed', 'entry 1 names an entry before it');
    else if (head !== undefined && previous !== head.hash)
      fault(
        'changed',
        `entry ${sequence - 1} was changed, or replaced: entry ${sequence} has another hash for it`,
      );
    // Goes on with what the line says of itself, so that one fault is reported once.
    if (expected === undefined || sequence >= expected) this.heads.set(shard, { sequence, hash: own[1]! });
  }

  /** Checks that the lines of a shard reach to the known end of its chain. */
  end(shard: number, head: Pick<ChainLink, 'sequence' | 'hash'>): void {
    const last = this.heads.get(shard);
    const reached = last?.sequence ?? 0;
    if (reached < head.sequence) {
      const detail = `${missing(reached + 1, head.sequence)} at the end`;
      this.note({ shard, sequence: reached + 1, id: null, problem: 'missing', detail });
    } else if (last && reached === head.sequence && last.hash !== head.hash) {
      const detail = `entry ${reached} is not the one that the chain ended with`;
      this.note({ shard, sequence: reached, id: null, problem: 'changed', detail });
    }
  }

  private note(fault: ChainFault): void {
    if (this.faults.length < MOST_FAULTS) this.faults.push(fault);
  }
}

function missing(from: number, to: number): string {
  return from === to ? `entry ${from} is missing` : `entries ${from} to ${to} are missing`;
}

function readLine(line: string): CheckedLine | null {
  try {
    const { shard, sequence, previous, id } = JSON.parse(line);
    const isWhole = Number.isSafeInteger(shard) && Number.isSafeInteger(sequence);
    return isWhole && typeof previous === 'string' ? { shard, sequence, previous, id: String(id) } : null;
  } catch {
    return null;
  }
}
