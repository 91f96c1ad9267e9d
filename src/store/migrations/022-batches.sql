-- oldest-program: 0.1.0
--
-- Batches: jobs that start together or not at all. A new table, and two new columns with a default; no row is rewritten.
-- Members that wait are blocked rows of `later`; a member in `jobs` always has a claim.

CREATE TABLE punctual.batches (
  id                uuid PRIMARY KEY,
  tenant            text NOT NULL,
  -- pending, running, succeeded, failed, cancelled
  state             text NOT NULL DEFAULT 'pending',
  -- cancel-rest, continue
  on_failure        text NOT NULL,
  -- The jobs, in the order in which they were submitted.
  members           uuid[] NOT NULL,
  -- The different queues and tasks of its members, for keys that are restricted to some.
  places            json NOT NULL,
  -- Counts how often it was set going, by its submission and by retries.
  run               int NOT NULL DEFAULT 1,
  -- When its last member is due: from then on it may start.
  due_at            bigint NOT NULL,
  start_timeout_ms  bigint,
  created_at        bigint NOT NULL,
  created_by        text NOT NULL,
  started_at        bigint,
  -- When somebody cancelled it while it ran: a promise that every later leader keeps.
  cancelled_at      bigint,
  ended_at          bigint,
  -- Why it failed without having started.
  error             json
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX batches_open ON punctual.batches (state, due_at, id) WHERE ended_at IS NULL;
CREATE INDEX batches_by_tenant ON punctual.batches (tenant, id);
CREATE INDEX batches_ended ON punctual.batches (ended_at) WHERE ended_at IS NOT NULL;

-- How many starts a token bucket is in debt for, because a batch started as a whole: the next leader must not forgive them.
ALTER TABLE punctual.queues ADD COLUMN debt int NOT NULL DEFAULT 0;
ALTER TABLE punctual.tenants ADD COLUMN debt int NOT NULL DEFAULT 0;

ALTER TABLE punctual.batches ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.batches FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
