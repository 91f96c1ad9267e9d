import type { EndState } from '../core/job.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded } from './ended-places.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** What steps need before they run: payloads with references, results of other steps, events, and the end of a wait. */

const READ_PAYLOADS = statement(
  'read-step-payloads',
  'SELECT l.id, l.payload, l.task FROM punctual.later l WHERE l.id = ANY($1::uuid[])',
);

/** A step whose payload refers to other steps. */
export interface OpenPayload extends Record<string, unknown> {
  readonly id: string;
  /** JSON text. */
  readonly payload: string;
  readonly task: string | null;
}

/** The payloads of blocked steps. */
export function readPayloads(db: Queryable, ids: readonly string[]): Promise<OpenPayload[]> {
  return run(db, READ_PAYLOADS, [ids]);
}

/** Also by ends that are being counted, or were passed on to some of the children. */
const FIND_STEPS = statement(
  'find-steps',
  `
    SELECT s.id, s.name, coalesce(s.outcome, o.state) AS outcome, coalesce(s.finished_at, o.finished_at) AS "finishedAt"
    FROM punctual.steps s
    LEFT JOIN LATERAL (SELECT o.state, o.finished_at FROM punctual.outbox o WHERE o.job = s.id LIMIT 1) o ON true
    WHERE s.workflow = $1::uuid AND s.name = ANY($2::text[])`,
);

/** A step that others refer to. */
export interface NamedStep extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly outcome: EndState | null;
  readonly finishedAt: number | null;
}

/** Steps of a workflow by their names. */
export function findSteps(db: Queryable, workflow: string, names: readonly string[]): Promise<NamedStep[]> {
  return run(db, FIND_STEPS, [workflow, names]);
}

/** By id and the exact moment of the end, so that one day of history is searched instead of all. */
const READ_RESULT = statement(
  'read-step-result',
  `
    SELECT h.result FROM ${allEnded('h')}
    WHERE h.tenant = $1 AND h.id = $2::uuid AND h.finished_at = $3::bigint AND h.state = 'succeeded'`,
);

/** The result of a step that succeeded, as JSON text; null if it has none. */
export async function readResult(
  db: Queryable,
  tenant: string,
  { id, finishedAt }: { readonly id: string; readonly finishedAt: number },
): Promise<string | null> {
  const [row] = await run<{ result: string | null }>(db, READ_RESULT, [tenant, id, finishedAt]);
  return row ? (row.result ?? 'null') : null;
}

const FIND_EVENTS = statement(
  'find-workflow-events',
  `
    SELECT e.workflow, e.name, e.payload FROM unnest($1::uuid[], $2::text[]) u(workflow, name)
    JOIN punctual.workflow_events e ON ${byIndex('e.workflow', 'u.workflow')} AND e.name = u.name`,
);

/** An event that has come. */
export interface WorkflowEvent extends Record<string, unknown> {
  readonly workflow: string;
  readonly name: string;
  /** JSON text. */
  readonly payload: string;
}

/** Those of the events that have come. */
export function findEvents(
  db: Queryable,
  events: readonly { readonly workflow: string; readonly name: string }[],
): Promise<WorkflowEvent[]> {
  return run(db, FIND_EVENTS, [events.map(({ workflow }) => workflow), events.map(({ name }) => name)]);
}

const ADD_EVENT = leaderStatement(
  'add-workflow-event',
  `added AS (
    INSERT INTO punctual.workflow_events (workflow, name, payload, created_at)
    SELECT $4::uuid, $5::text, $6::json, $7::bigint WHERE ${WHILE_TERM_LASTS}
    ON CONFLICT (workflow, name) DO NOTHING
    RETURNING workflow
  ), answer AS (SELECT EXISTS (SELECT 1 FROM added) AS first)`,
);

/** Keeps the event if it is the first of its name; answers whether it is. */
export async function addEvent(
  db: Queryable,
  term: TermKey,
  { workflow, name, payload }: WorkflowEvent,
  now: number,
): Promise<boolean> {
  const [row] = await runAsLeader<{ first: boolean }>(db, term, ADD_EVENT, [workflow, name, payload, now]);
  return row?.first ?? false;
}

const WAITING = `s.id, s.workflow, s.tenant, s.wait, s.inner_graph IS NOT NULL AS inner`;

/** Without those whose end is not counted yet. */
const READ_WOKEN = statement(
  'read-woken-steps',
  `
    SELECT ${WAITING}, coalesce((SELECT w.held FROM punctual.workflows w WHERE w.id = s.workflow), false) AS held
    FROM punctual.steps s
    WHERE s.wake_at <= $1::bigint AND s.outcome IS NULL
      AND NOT EXISTS (SELECT 1 FROM punctual.outbox o WHERE o.job = s.id)
    ORDER BY s.wake_at LIMIT $2`,
);

const READ_WAITING = statement(
  'read-waiting-steps',
  `SELECT s.id, s.name, s.wait, s.released FROM punctual.steps s
    WHERE s.workflow = $1::uuid AND s.outcome IS NULL AND s.wait IS NOT NULL`,
);

const NEXT_WAKE = statement(
  'next-wake',
  'SELECT min(wake_at) AS at FROM punctual.steps WHERE wake_at > $1::bigint',
);

/** A step that waits for a time or an event, or will. */
export interface WaitingStep extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly wait: string;
  /** Whether it waits for nothing else any more. */
  readonly released: boolean;
}

/** A step that has waited long enough, or runs again and refers to others. */
export interface WokenStep extends Record<string, unknown> {
  readonly id: string;
  readonly workflow: string;
  readonly tenant: string;
  /** JSON text; null if it is to run. */
  readonly wait: string | null;
  /** Whether it starts a workflow. */
  readonly inner: boolean;
  /** Whether its workflow is on hold. */
  readonly held: boolean;
}

/** Steps that are to be looked at now. */
export function readWoken(db: Queryable, now: number, limit: number): Promise<WokenStep[]> {
  return run(db, READ_WOKEN, [now, limit]);
}

/** The steps of a workflow that wait for a time or an event, or will when they are reached. */
export function readWaitingSteps(db: Queryable, workflow: string): Promise<WaitingStep[]> {
  return run(db, READ_WAITING, [workflow]);
}

/** When the next step has waited long enough. */
export async function nextWake(db: Queryable, after: number): Promise<number | null> {
  const [row] = await run<{ at: number | null }>(db, NEXT_WAKE, [after]);
  return row?.at ?? null;
}
