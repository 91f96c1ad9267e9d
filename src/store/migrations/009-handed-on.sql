-- oldest-program: 0.1.0
--
-- Attempts that no worker holds any more: something else will report their end.

-- When the worker handed the attempt on; null while a worker holds it. And when it had started, by the worker's word,
-- because whoever reports the end does not know. Both are new columns without a default: no row is rewritten.
ALTER TABLE punctual.claims ADD COLUMN handed_on_at bigint, ADD COLUMN started_at bigint;
