-- oldest-program: 0.1.0
--
-- The trace that a job belongs to.

-- The `traceparent` of the request that submitted the job (W3C Trace Context); null without one. New columns without a
-- default: no row is rewritten.
ALTER TABLE punctual.jobs ADD COLUMN traceparent text;
ALTER TABLE punctual.later ADD COLUMN traceparent text;
ALTER TABLE punctual.job_history ADD COLUMN traceparent text;
