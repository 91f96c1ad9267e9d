-- oldest-program: 0.1.0
--
-- Schedules, and the ledger of their occurrences.

CREATE TABLE punctual.schedules (
  id          uuid PRIMARY KEY,
  tenant      text NOT NULL,
  name        text NOT NULL,
  -- What was asked for, in the form of the public API, without the name.
  definition  json NOT NULL,
  paused      boolean NOT NULL,
  -- Every occurrence up to here is decided: it has a row in the ledger, or it is part of a range that has one.
  watermark   bigint NOT NULL,
  -- When the leader has to look at the schedule next; null when no occurrence comes, or none while it is paused.
  fire_at     bigint,
  -- The job of the newest occurrence that got one, for those that must not overlap.
  last_job    uuid,
  created_at  bigint NOT NULL,
  created_by  text NOT NULL,
  changed_at  bigint NOT NULL,
  changed_by  text NOT NULL,
  version     int NOT NULL DEFAULT 1,
  -- A deleted schedule stays as long as its ledger.
  deleted_at  bigint
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX schedules_by_name ON punctual.schedules (tenant, name) WHERE deleted_at IS NULL;
CREATE INDEX schedules_deleted ON punctual.schedules (tenant, name, deleted_at) WHERE deleted_at IS NOT NULL;
-- Finding what is due is one range of this index, however many schedules there are.
CREATE INDEX schedules_to_fire ON punctual.schedules (fire_at) WHERE fire_at IS NOT NULL;

-- The ledger: what became of every occurrence. An occurrence is unique by schedule and moment, whoever leads; runs
-- that somebody asked for by hand lie beside the timetable and cannot collide with it.
CREATE TABLE punctual.occurrences (
  schedule     uuid NOT NULL,
  at           bigint NOT NULL,
  by_hand      boolean NOT NULL DEFAULT false,
  tenant       text NOT NULL,
  -- ran (has a job), late, waiting (for the job before it), skipped or missed
  state        text NOT NULL,
  reason       text,
  job          uuid,
  late_by      bigint,
  -- Later than this, in milliseconds, is late.
  late_after   bigint,
  -- Consecutive occurrences that were passed over together, this one the first.
  until        bigint,
  count        bigint NOT NULL DEFAULT 1,
  -- When to find out whether the job has started in time; null when that is known.
  judge_at     bigint,
  recorded_at  bigint NOT NULL,
  PRIMARY KEY (schedule, at, by_hand)
) WITH (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX occurrences_to_judge ON punctual.occurrences (judge_at) WHERE judge_at IS NOT NULL;
CREATE INDEX occurrences_waiting ON punctual.occurrences (schedule, at) WHERE state = 'waiting';
CREATE INDEX occurrences_by_age ON punctual.occurrences (recorded_at);

-- Jobs point back to the schedule and the occurrence they were made for; both are null for all others.
ALTER TABLE punctual.jobs ADD COLUMN schedule text, ADD COLUMN occurrence bigint;
ALTER TABLE punctual.later ADD COLUMN schedule text, ADD COLUMN occurrence bigint;
ALTER TABLE punctual.job_history ADD COLUMN schedule text, ADD COLUMN occurrence bigint;

CREATE INDEX jobs_by_schedule ON punctual.jobs (tenant, schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX later_by_schedule ON punctual.later (tenant, schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX job_history_by_schedule ON punctual.job_history (tenant, schedule, id) WHERE schedule IS NOT NULL;

ALTER TABLE punctual.tallies
  ADD COLUMN occurrences_late bigint NOT NULL DEFAULT 0, ADD COLUMN occurrences_missed bigint NOT NULL DEFAULT 0;
ALTER TABLE punctual.tally_minutes
  ADD COLUMN occurrences_late bigint NOT NULL DEFAULT 0, ADD COLUMN occurrences_missed bigint NOT NULL DEFAULT 0;
ALTER TABLE punctual.tally_totals
  ADD COLUMN occurrences_late bigint NOT NULL DEFAULT 0, ADD COLUMN occurrences_missed bigint NOT NULL DEFAULT 0;
