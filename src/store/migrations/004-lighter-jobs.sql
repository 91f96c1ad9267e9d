-- oldest-program: 0.1.0
--
-- Less work for each job.

-- False while a live row is just what its submission stored. The node that stored a job can hand it over without
-- reading it back; a claim that relies on that memory takes only what nobody has touched since.
ALTER TABLE punctual.jobs ADD COLUMN edited boolean NOT NULL DEFAULT false;

-- Makes the planner's statistics of a day of history cheap: only of columns that jobs are looked for by. A sample of all
-- forty, payloads and results among them, every few seconds cost more than all vacuums together.
CREATE FUNCTION punctual.limit_statistics(history regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE (
    SELECT 'ALTER TABLE ' || history || ' ' || string_agg(format('ALTER COLUMN %I SET STATISTICS 0', attname), ', ')
    FROM pg_attribute
    WHERE attrelid = history AND attnum > 0 AND NOT attisdropped
      AND attname NOT IN ('id', 'tenant', 'queue', 'state', 'task', 'worker', 'schedule', 'finished_at'));
END $$;

SELECT punctual.limit_statistics(inhrelid) FROM pg_inherits WHERE inhparent = 'punctual.job_history'::regclass;
