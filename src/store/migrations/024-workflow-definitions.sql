-- oldest-program: 0.1.0
--
-- Graphs that are kept under names, and schedules that run workflows and batches. A new table and new columns without values;
-- no row is rewritten.

-- A version never changes. Any node writes them; one that was replaced and that no workflow on record was started from is
-- removed by the leader.
CREATE TABLE punctual.workflow_definitions (
  tenant       text NOT NULL,
  name         text NOT NULL,
  version      int NOT NULL,
  -- The steps as they were defined, in the form of the public API.
  jobs         json NOT NULL,
  on_failure   text NOT NULL,
  running      text NOT NULL,
  -- SHA-256 of all three: the same again is no new version.
  digest       bytea NOT NULL,
  bytes        int NOT NULL,
  steps        int NOT NULL,
  -- The queues and tasks of its steps when it was defined; null if there are too many. An empty name is an inline target.
  queues       text[],
  tasks        text[],
  created_at   bigint NOT NULL,
  created_by   text NOT NULL,
  -- When a newer version took its place, or somebody deleted the definition; null for the version that starts take.
  replaced_at  bigint,
  PRIMARY KEY (tenant, name, version)
);
CREATE UNIQUE INDEX workflow_definitions_newest ON punctual.workflow_definitions (tenant, name) WHERE replaced_at IS NULL;
CREATE INDEX workflow_definitions_replaced ON punctual.workflow_definitions (tenant, name, version)
  WHERE replaced_at IS NOT NULL;
ALTER TABLE punctual.workflow_definitions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.workflow_definitions FOR SELECT
  USING (tenant = current_setting('punctual.tenant', true));

-- The last number that a version of each name got, so that no number ever means two graphs, also when the versions are gone.
-- Written with each version. The empty name stands for those that were forgotten: none of them had a higher number.
CREATE TABLE punctual.definition_numbers (
  tenant   text NOT NULL,
  name     text NOT NULL,
  version  int NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- The run of an occurrence, where that is not its job alone: `job` is then the first of its jobs, by which it is judged
-- whether it started in time.
ALTER TABLE punctual.occurrences ADD COLUMN workflow uuid, ADD COLUMN batch uuid;
-- The same of the newest occurrence that got a run.
ALTER TABLE punctual.schedules ADD COLUMN last_workflow uuid, ADD COLUMN last_batch uuid;

ALTER TABLE punctual.batches ADD COLUMN schedule text, ADD COLUMN occurrence bigint;
CREATE INDEX batches_by_schedule ON punctual.batches (tenant, schedule, id) WHERE schedule IS NOT NULL;

-- What a workflow was started from. The key makes sure that a version is not removed while a workflow that uses it is being
-- stored.
ALTER TABLE punctual.workflows ADD COLUMN definition text, ADD COLUMN definition_version int,
  ADD COLUMN schedule text, ADD COLUMN occurrence bigint;
CREATE INDEX workflows_by_definition ON punctual.workflows (tenant, definition, definition_version, id)
  WHERE definition IS NOT NULL;
CREATE INDEX workflows_by_schedule ON punctual.workflows (tenant, schedule, id) WHERE schedule IS NOT NULL;
ALTER TABLE punctual.workflows ADD CONSTRAINT workflows_of_definition
  FOREIGN KEY (tenant, definition, definition_version) REFERENCES punctual.workflow_definitions (tenant, name, version);
