-- oldest-program: 0.1.0
--
-- The sum behind the histogram of lateness, in milliseconds; what was counted before is not in it. New columns with a
-- constant default: no row is rewritten.

ALTER TABLE punctual.tallies ADD COLUMN lateness_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE punctual.tally_minutes ADD COLUMN lateness_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE punctual.tally_totals ADD COLUMN lateness_ms bigint NOT NULL DEFAULT 0;
