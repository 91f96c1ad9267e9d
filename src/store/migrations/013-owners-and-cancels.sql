-- oldest-program: 0.1.0
--
-- Schedules that a program keeps as its code says, and requests to cancel jobs from callers' own transactions.

-- The name of the program that created the schedule from its code; null for schedules that are made one by one. A new column
-- without a default: no row is rewritten.
ALTER TABLE punctual.schedules ADD COLUMN managed_by text;
CREATE INDEX schedules_by_owner ON punctual.schedules (tenant, managed_by, name)
  WHERE managed_by IS NOT NULL AND deleted_at IS NULL;

-- Requests to cancel jobs, made inside callers' own transactions: the leader alone changes jobs, so it carries them out
-- after the commit and then removes them. Rows are only ever added by callers, so no caller waits for another.
CREATE TABLE punctual.cancel_requests (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant        text NOT NULL,
  job           uuid NOT NULL,
  requested_by  text NOT NULL
);
-- A submission is not admitted if its own transaction has cancelled it.
CREATE INDEX cancel_requests_by_job ON punctual.cancel_requests (job);

-- The creator of what the caller of a function with its owner's rights asks for; throws if nothing was granted to it. See
-- punctual.submit_job.
CREATE FUNCTION punctual.caller_creator(tenant text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  caller name := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
BEGIN
  IF pg_has_role(caller, current_user, 'USAGE') THEN RETURN 'transaction:' || caller; END IF;
  RETURN punctual.granted_creator(caller, tenant);
END $$;
REVOKE ALL ON FUNCTION punctual.caller_creator(text) FROM PUBLIC;

-- Cancels a job if the caller's transaction commits. Nothing happens to a job that has ended or does not exist by then.
CREATE FUNCTION punctual.cancel_job(tenant text, job uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, punctual, pg_temp SET standard_conforming_strings = on AS $$
  INSERT INTO punctual.cancel_requests (tenant, job, requested_by)
  VALUES (cancel_job.tenant, cancel_job.job, punctual.caller_creator(cancel_job.tenant))
$$;
REVOKE ALL ON FUNCTION punctual.cancel_job(text, uuid) FROM PUBLIC;

-- The same for the job that has the key, as this transaction sees it, and for all that were submitted with the key and are
-- not admitted yet: only the leader decides which of them gets the key. Answers with the id of one of them, else with that
-- of the ended job that has the key, or null when there is none.
CREATE FUNCTION punctual.cancel_job_of_key(tenant text, key text) RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, punctual, pg_temp SET standard_conforming_strings = on AS $$
  WITH caller AS MATERIALIZED (
    SELECT punctual.caller_creator(cancel_job_of_key.tenant) AS creator
  ), holder AS MATERIALIZED (
    SELECT punctual.job_of_key(cancel_job_of_key.tenant, cancel_job_of_key.key) AS job FROM caller
  ), requested AS (
    INSERT INTO punctual.cancel_requests (tenant, job, requested_by)
    SELECT cancel_job_of_key.tenant, found.job, caller.creator FROM caller, (
      SELECT h.job FROM holder h
      WHERE coalesce(
        (SELECT true FROM punctual.jobs j WHERE j.id = h.job),
        (SELECT true FROM punctual.later l WHERE l.id = h.job))
      UNION
      SELECT l.id FROM punctual.later l
      WHERE l.tenant = cancel_job_of_key.tenant AND l.key = cancel_job_of_key.key AND l.submission IS NOT NULL
    ) found
    RETURNING job
  )
  SELECT coalesce((SELECT r.job FROM requested r ORDER BY r.job LIMIT 1), (SELECT h.job FROM holder h))
$$;
REVOKE ALL ON FUNCTION punctual.cancel_job_of_key(text, text) FROM PUBLIC;
