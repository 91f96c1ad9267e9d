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
