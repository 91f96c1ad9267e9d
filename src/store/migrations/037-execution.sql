-- oldest-program: 0.1.0
--
-- How the last attempt of a job ran a program. A new column that is null; no row is rewritten.

ALTER TABLE punctual.job_history ADD COLUMN execution json;
ALTER TABLE punctual.job_history_kept ADD COLUMN execution json;
