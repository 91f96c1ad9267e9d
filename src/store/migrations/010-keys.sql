-- oldest-program: 0.1.0
--
-- Keys with modes: which submission a job has its values from, and the job that a repeated key means.

-- When the newest submission was made that the job of a key has its values from, and when a caller's transaction
-- submitted: microseconds, so that two calls in one transaction have an order. An older one that is admitted late does not
-- overwrite what a newer one said. Null is from before this was noted, and older than everything. The defaults are set
-- after the columns were added, so that no row is rewritten.
ALTER TABLE punctual.keys ADD COLUMN said_at bigint;
ALTER TABLE punctual.keys
  ALTER COLUMN said_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
ALTER TABLE punctual.later ADD COLUMN said_at bigint;
ALTER TABLE punctual.later
  ALTER COLUMN said_at SET DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- The job that has a key, as far as this statement can see it; else null. What other transactions have not committed is
-- invisible here: then the leader decides when it admits the submission.
CREATE FUNCTION punctual.job_of_key(of_tenant text, of_key text) RETURNS uuid
LANGUAGE sql STABLE AS $$
  SELECT k.job FROM punctual.keys k
  WHERE k.tenant = of_tenant AND k.key = of_key
    AND coalesce(
      (SELECT true FROM punctual.jobs j WHERE j.id = k.job),
      (SELECT true FROM punctual.later l WHERE l.id = k.job),
      -- Days before the job was made cannot hold it, however wrong the clock was that made its id.
      (SELECT true FROM punctual.job_history h
       WHERE h.tenant = k.tenant AND h.id = k.job
         AND h.finished_at >= ('x' || left(replace(k.job::text, '-', ''), 12))::bit(48)::bigint - 172800000
       LIMIT 1))
$$;
REVOKE ALL ON FUNCTION punctual.job_of_key(text, text) FROM PUBLIC;
