-- oldest-program: 0.1.0
--
-- Ended jobs that outlast their day of history: steps of workflows, and members of batches, whose workflow or batch has not
-- ended or is young. Days are removed as whole partitions; what has to stay is moved here before. A new table; no row is
-- rewritten.
CREATE TABLE punctual.job_history_kept (LIKE punctual.job_history INCLUDING DEFAULTS);
-- A job is here once, whatever happens while it is moved.
ALTER TABLE punctual.job_history_kept ADD PRIMARY KEY (tenant, id);
CREATE INDEX job_history_kept_failed ON punctual.job_history_kept (tenant, id) WHERE state = 'failed';
CREATE INDEX job_history_kept_by_schedule ON punctual.job_history_kept (tenant, schedule, id) WHERE schedule IS NOT NULL;
-- They leave with their workflow or batch.
CREATE INDEX job_history_kept_by_workflow ON punctual.job_history_kept (workflow) WHERE workflow IS NOT NULL;
CREATE INDEX job_history_kept_by_batch ON punctual.job_history_kept (batch) WHERE batch IS NOT NULL;
SELECT punctual.limit_statistics('punctual.job_history_kept');

ALTER TABLE punctual.job_history_kept ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON punctual.job_history_kept FOR SELECT
  USING (tenant = current_setting('punctual.tenant', true));

-- Counts of workflows and batches. Where counts are appended they have no default, so that rows that count plain jobs do not
-- grow; where they are added up, they begin with what there is.
ALTER TABLE punctual.tallies
  ADD COLUMN workflows_submitted bigint, ADD COLUMN workflows_retried bigint, ADD COLUMN workflows_succeeded bigint,
  ADD COLUMN workflows_failed bigint, ADD COLUMN workflows_cancelled bigint, ADD COLUMN steps_skipped bigint,
  ADD COLUMN batches_submitted bigint, ADD COLUMN batches_started bigint, ADD COLUMN batches_succeeded bigint,
  ADD COLUMN batches_failed bigint, ADD COLUMN batches_cancelled bigint, ADD COLUMN batches_timed_out bigint;
DO $add$
DECLARE counted text;
BEGIN
  FOREACH counted IN ARRAY ARRAY['workflows_submitted', 'workflows_retried', 'workflows_succeeded', 'workflows_failed',
    'workflows_cancelled', 'steps_skipped', 'batches_submitted', 'batches_started', 'batches_succeeded', 'batches_failed',
    'batches_cancelled', 'batches_timed_out']
  LOOP
    EXECUTE format('ALTER TABLE punctual.tally_minutes ADD COLUMN %I bigint NOT NULL DEFAULT 0', counted);
    EXECUTE format('ALTER TABLE punctual.tally_totals ADD COLUMN %I bigint NOT NULL DEFAULT 0', counted);
  END LOOP;
END $add$;
INSERT INTO punctual.tally_totals AS t (tenant, workflows_submitted, workflows_succeeded, workflows_failed, workflows_cancelled)
SELECT w.tenant, count(*), count(*) FILTER (WHERE w.state = 'succeeded'), count(*) FILTER (WHERE w.state = 'failed'),
  count(*) FILTER (WHERE w.state = 'cancelled')
FROM punctual.workflows w GROUP BY w.tenant
ON CONFLICT (tenant) DO UPDATE SET workflows_submitted = excluded.workflows_submitted,
  workflows_succeeded = excluded.workflows_succeeded, workflows_failed = excluded.workflows_failed,
  workflows_cancelled = excluded.workflows_cancelled;
