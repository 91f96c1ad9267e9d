-- oldest-program: 0.1.0
--
-- Lists and logs that stay within their bounds.

-- What a job's log weighs, once nobody else is writing to it; whoever asks is then the one who writes, to the end of the
-- transaction. The function is volatile, so that the sum is read after the lock was had and not as of the statement's
-- beginning.
CREATE FUNCTION punctual.lock_log(log_of uuid, stored_from bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('punctual log ' || log_of::text, 0));
  RETURN (
    SELECT coalesce(sum(octet_length(line::text)), 0) FROM punctual.job_logs
    WHERE job = log_of AND stored_at >= stored_from);
END $$;

-- A new leader reads the living sessions alone, however many have died.
CREATE INDEX workers_living ON punctual.workers (id) WHERE state <> 'dead';
