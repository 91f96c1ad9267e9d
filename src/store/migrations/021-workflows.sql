-- oldest-program: 0.1.0
--
-- Workflows: graphs of jobs. New columns without values and new tables; no row is rewritten. The index of the jobs to be
-- admitted is made again, because blocked ones must not be in it.

CREATE TABLE punctual.workflows (
  id          uuid PRIMARY KEY,
  tenant      text NOT NULL,
  name        text NOT NULL,
  key         text,
  -- running, succeeded, failed, cancelled
  state       text NOT NULL DEFAULT 'running',
  -- Counts how often it was set going, by its submission and by retries.
  run         int NOT NULL DEFAULT 1,
  steps       int NOT NULL,
  -- Steps whose ends have not been counted yet; the workflow ends in the transaction that counts the last one.
  steps_left  int NOT NULL,
  -- Steps that ended badly.
  failed      int NOT NULL DEFAULT 0,
  on_failure  text NOT NULL,
  running     text NOT NULL,
  -- Why the rest is skipped: failure or cancel; null while it goes on.
  stopping    text,
  -- Whether what stopping means has been done to all steps.
  swept       boolean NOT NULL DEFAULT true,
  held        boolean NOT NULL DEFAULT false,
  -- The queues and tasks of its steps, for keys that are restricted to some; null if there are too many. An empty name is an
  -- inline target.
  queues      text[],
  tasks       text[],
  created_at  bigint NOT NULL,
  created_by  text NOT NULL,
  ended_at    bigint
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
CREATE UNIQUE INDEX workflows_by_key ON punctual.workflows (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX workflows_by_tenant ON punctual.workflows (tenant, id);
-- Old ones are removed by when they ended.
CREATE INDEX workflows_ended ON punctual.workflows (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX workflows_to_sweep ON punctual.workflows (id) WHERE NOT swept;

-- What the graph says about a step, and what its parents came to. Counters are apart from the wide rows of jobs, whose
-- updates would cost ten times as much. Written by the executor alone, after the submission.
CREATE TABLE punctual.steps (
  id           uuid PRIMARY KEY,
  workflow     uuid NOT NULL,
  tenant       text NOT NULL,
  name         text NOT NULL,
  -- Its number in an order in which every step is behind its parents.
  place        int NOT NULL,
  run_if       text NOT NULL,
  parents      int NOT NULL,
  parents_left int NOT NULL,
  ok           int NOT NULL DEFAULT 0,
  bad          int NOT NULL DEFAULT 0,
  -- Whether it was decided that it runs.
  released     boolean NOT NULL,
  -- Counts from its release.
  delay_ms     bigint NOT NULL DEFAULT 0,
  -- What it waits for instead of running a job, as JSON: a duration, or an event and a timeout.
  wait         json,
  -- Whether its payload refers to results of other steps, and that payload: its job has the one that it came to.
  refers       boolean NOT NULL DEFAULT false,
  template     json,
  -- When a step that waits and whose parents have ended is looked at again, if it waits for a time.
  wake_at      bigint,
  outcome      text,
  finished_at  bigint
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX steps_by_workflow ON punctual.steps (workflow, id);

CREATE INDEX steps_to_wake ON punctual.steps (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE punctual.edges (
  parent  uuid NOT NULL,
  child   uuid NOT NULL,
  PRIMARY KEY (parent, child)
);
CREATE INDEX edges_by_child ON punctual.edges (child);

-- Steps that have ended and whose ends are not counted yet, written in the transactions of the ends. `place` is the child up
-- to which the end was passed on, if that takes several transactions.
CREATE TABLE punctual.outbox (
  job          uuid PRIMARY KEY,
  workflow     uuid NOT NULL,
  state        text NOT NULL,
  finished_at  bigint NOT NULL,
  place        uuid
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);

-- Events that steps wait for. The first of a name is kept and serves steps that are reached later.
CREATE TABLE punctual.workflow_events (
  workflow    uuid NOT NULL,
  name        text NOT NULL,
  payload     json NOT NULL,
  created_at  bigint NOT NULL,
  PRIMARY KEY (workflow, name)
);

ALTER TABLE punctual.workflows ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.workflows FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
ALTER TABLE punctual.steps ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.steps FOR SELECT USING (tenant = current_setting('punctual.tenant', true));
-- An edge has no tenant but that of its steps, whose policy holds inside this one.
ALTER TABLE punctual.edges ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.edges FOR SELECT
  USING ((SELECT true FROM punctual.steps s WHERE s.id = edges.parent));

-- The workflow that a job is a step of, and the batch that it is a member of. The tables that jobs wait for come last, so that
-- they are locked for the shortest time.
ALTER TABLE punctual.job_history ADD COLUMN workflow uuid, ADD COLUMN batch uuid;
-- A blocked job waits for other jobs and is not admitted, whatever its time and whether it is held or not.
ALTER TABLE punctual.later ADD COLUMN workflow uuid, ADD COLUMN batch uuid,
  ADD COLUMN blocked boolean NOT NULL DEFAULT false;
DROP INDEX punctual.later_to_admit;
CREATE INDEX later_to_admit ON punctual.later (admit_at) WHERE NOT held AND NOT blocked;
ALTER TABLE punctual.jobs ADD COLUMN workflow uuid, ADD COLUMN batch uuid;
