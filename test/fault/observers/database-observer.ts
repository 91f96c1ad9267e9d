import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { AttemptOutcome, JobState } from '../../../src/core/job.js';
import type { AuditEntry, JobRecord, LeaseSighting } from '../history.js';
import { monotonic } from '../monotonic.js';
import type { Postgres } from '../rig/postgres.js';

/**
 * Triggers of the harness record every claim, hand-on, release, end and term, and the ends of workflows and batches, in the order in which they were written. A
 * write holds its term's row until its commit and a takeover waits for that, so this order is the true one: no
 * tolerance for clocks is needed.
 */
const AUDIT = `
  CREATE TABLE fault.audit (
    seq bigint GENERATED ALWAYS AS IDENTITY, tx bigint NOT NULL DEFAULT txid_current(), kind text NOT NULL, job uuid, fence int, epoch bigint NOT NULL,
    writer text NOT NULL DEFAULT current_setting('application_name'),
    at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp());
  CREATE FUNCTION fault.claimed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, job, fence, epoch) SELECT 'claimed', job, fence, epoch FROM rows; RETURN NULL;
  END $$;
  CREATE FUNCTION fault.handed_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, job, fence, epoch) VALUES ('handed-on', NEW.job, NEW.fence, NEW.epoch); RETURN NULL;
  END $$;
  CREATE FUNCTION fault.freed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, job, fence, epoch) SELECT 'freed', job, fence, epoch FROM rows; RETURN NULL;
  END $$;
  CREATE FUNCTION fault.ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, job, fence, epoch) SELECT 'ended', id, fence, coalesce(epoch, 0) FROM rows;
    RETURN NULL;
  END $$;
  CREATE FUNCTION fault.term() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, epoch, writer) VALUES ('term', NEW.epoch, NEW.holder); RETURN NULL;
  END $$;
  CREATE FUNCTION fault.over() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO fault.audit (kind, job, epoch) VALUES ('over', NEW.id, 0); RETURN NULL;
  END $$;
  CREATE TRIGGER claimed AFTER INSERT ON punctual.claims
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION fault.claimed();
  CREATE TRIGGER handed_on AFTER UPDATE OF handed_on_at ON punctual.claims
    FOR EACH ROW WHEN (OLD.handed_on_at IS NULL AND NEW.handed_on_at IS NOT NULL) EXECUTE FUNCTION fault.handed_on();
  CREATE TRIGGER freed AFTER DELETE ON punctual.claims
    REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION fault.freed();
  CREATE TRIGGER ended AFTER INSERT ON punctual.job_history
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION fault.ended();
  CREATE TRIGGER term AFTER UPDATE OF epoch ON punctual.leases
    FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch) EXECUTE FUNCTION fault.term();
  CREATE TRIGGER over AFTER UPDATE OF ended_at ON punctual.workflows
    FOR EACH ROW WHEN (NEW.ended_at IS DISTINCT FROM OLD.ended_at) EXECUTE FUNCTION fault.over();
  CREATE TRIGGER over AFTER UPDATE OF ended_at ON punctual.batches
    FOR EACH ROW WHEN (NEW.ended_at IS DISTINCT FROM OLD.ended_at) EXECUTE FUNCTION fault.over();
  INSERT INTO fault.audit (kind, epoch, writer) SELECT 'term', epoch, holder FROM punctual.leases WHERE epoch > 0`;

const READ_AUDIT = `
  SELECT seq::int, tx::float8 AS tx, kind, job, fence, epoch::int, replace(writer, 'punctual ', '') AS writer,
    extract(epoch FROM at)::float8 * 1000 AS at
  FROM fault.audit WHERE seq > $1 ORDER BY seq LIMIT 20000`;

const READ_JOBS = `
  SELECT id, (payload ->> 'n')::int AS n, key, state, run_at::float8 AS "runAt", at_most_once AS "atMostOnce", fence,
    epoch::int, outcome, left(result::text, 100) AS result, to_json(earlier_attempts) AS earlier
  FROM (
    SELECT id, payload, key, state, run_at, at_most_once, fence, epoch, outcome, result, earlier_attempts
    FROM punctual.job_history WHERE schedule IS NULL
    UNION ALL
    SELECT j.id, payload, key, CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END, run_at, at_most_once,
      NULL, NULL, NULL, NULL, earlier_attempts
    FROM punctual.jobs j LEFT JOIN punctual.claims c ON c.job = j.id WHERE schedule IS NULL
    UNION ALL
    SELECT id, payload, key, 'pending', run_at, at_most_once, NULL, NULL, NULL, NULL, earlier_attempts
    FROM punctual.later
  ) places`;

const READ_UNFINISHED = `
  SELECT ((SELECT count(*) FROM punctual.jobs) + (SELECT count(*) FROM punctual.later)
    + (SELECT count(*) FROM punctual.workflows WHERE ended_at IS NULL)
    + (SELECT count(*) FROM punctual.batches WHERE ended_at IS NULL))::int AS count`;

/** The lease is looked at every 50 ms, and what waits is counted once in this many looks. */
const LOOKS_PER_COUNT = 20;

interface JobRow {
  readonly id: string;
  readonly n: number;
  readonly key: string | null;
  readonly state: JobState;
  readonly runAt: number;
  readonly atMostOnce: boolean;
  readonly fence: number | null;
  readonly epoch: number | null;
  readonly outcome: AttemptOutcome | null;
  readonly result: string | null;
  readonly earlier: readonly { fence: number; epoch: number; outcome: AttemptOutcome }[] | null;
}

export interface Lease {
  readonly epoch: number;
  readonly holder: string;
  readonly expired: boolean;
}

/** Looks at the database past all nodes and proxies. */
export class DatabaseObserver {
  readonly leases: LeaseSighting[] = [];
  /** Jobs that had not ended when it was last looked. */
  waiting = 0;
  #client: pg.Client | undefined;
  #watching: Promise<void> = Promise.resolve();
  #stopped = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly postgres: Postgres) {}

  /** Installs the audit; to be done once, when the tables are there. */
  async install(): Promise<void> {
    await this.query(AUDIT);
  }

  /** Notes every change of the lease that it sees, until stopped. */
  watch(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#watching;
    await this.#client?.end().catch(() => undefined);
  }

  async lease(): Promise<Lease> {
    const rows = await this.query<Lease>(
      'SELECT epoch::int, holder, expires_at < clock_timestamp() AS expired FROM punctual.leases',
    );
    return rows[0]!;
  }

  /** Ends sessions of nodes: all of them, or those of the given application. */
  async terminate(applications: string): Promise<number> {
    const rows = await this.query<{ ended: boolean }>(
      'SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE application_name LIKE $1',
      [applications],
    );
    return rows.filter((row) => row.ended).length;
  }

  /** Jobs that have not ended yet, and what ends after them. */
  async unfinished(): Promise<number> {
    const rows = await this.query<{ count: number }>(READ_UNFINISHED);
    return rows[0]!.count;
  }

  async claims(): Promise<number> {
    const rows = await this.query<{ count: number }>('SELECT count(*)::int AS count FROM punctual.claims');
    return rows[0]!.count;
  }

  /** The attempts that are handed on to the receivers of their calls. */
  async handedOn(): Promise<string[]> {
    const rows = await this.query<{ attempt: string }>(
      "SELECT job || ' ' || fence AS attempt FROM punctual.claims WHERE handed_on_at IS NOT NULL",
    );
    return rows.map(({ attempt }) => attempt);
  }

  /** How many jobs are claimed under a later term than this. */
  async claimsAfter(epoch: number): Promise<number> {
    const rows = await this.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM punctual.claims WHERE epoch > $1',
      [epoch],
    );
    return rows[0]!.count;
  }

  /** The last write that the audit has. */
  async lastWrite(): Promise<number> {
    const rows = await this.query<{ seq: number }>(
      'SELECT coalesce(max(seq), 0)::int AS seq FROM fault.audit',
    );
    return rows[0]!.seq;
  }

  /** The audit after a write, or all of it, in order, on the monotonic clock. */
  async audit(after = 0): Promise<AuditEntry[]> {
    const offset = wallOffset();
    const entries: AuditEntry[] = [];
    for (;;) {
      const page = await this.query<AuditEntry>(READ_AUDIT, [entries.at(-1)?.seq ?? after]);
      for (const entry of page) entries.push({ ...entry, at: entry.at - offset });
      if (page.length === 0) return entries;
    }
  }

  /** Every job in every place, apart from those of schedules, which are looked at by themselves. */
  async jobs(): Promise<JobRecord[]> {
    const offset = wallOffset();
    const rows = await this.query<JobRow>(READ_JOBS);
    return rows.map(({ fence, epoch, outcome, earlier, ...row }) => ({
      ...row,
      runAt: row.runAt - offset,
      attempts: [
        ...(earlier ?? []).map((attempt) => ({
          fence: attempt.fence,
          epoch: attempt.epoch,
          outcome: attempt.outcome,
        })),
        ...(fence !== null && outcome !== null ? [{ fence, epoch: epoch ?? 0, outcome }] : []),
      ],
    }));
  }

  /** Asks on the observer's connection, one question after another. */
  query<R>(text: string, values: unknown[] = []): Promise<R[]> {
    const answer = this.#last.then(() => this.#ask<R>(text, values));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  /** Asks again on a new connection when the last one was lost. */
  async #ask<R>(text: string, values: unknown[]): Promise<R[]> {
    for (let left = 300; ; left -= 1) {
      try {
        this.#client ??= await this.postgres.connect();
        const result = await this.#client.query(text, values);
        return result.rows as R[];
      } catch (error) {
        const { code } = error as { code?: string };
        // A server that is away, starting or out of connections is part of the plan; a wrong statement is not.
        if (left === 0 || (code !== undefined && /^(42|22|23)/.test(code))) throw error;
        void this.#client?.end().catch(() => undefined);
        this.#client = undefined;
        await sleep(100);
      }
    }
  }

  async #watch(): Promise<void> {
    for (let looks = 0; !this.#stopped; looks += 1) {
      if (looks % LOOKS_PER_COUNT === 0) this.waiting = await this.unfinished();
      const { epoch, holder } = await this.lease();
      const last = this.leases.at(-1);
      if (last?.epoch !== epoch || last.holder !== holder)
        this.leases.push({ epoch, holder, at: monotonic() });
      await sleep(50);
    }
  }
}

/** What lies between the wall clock, which is also the database's, and the clock of the run. */
function wallOffset(): number {
  return Date.now() - monotonic();
}
