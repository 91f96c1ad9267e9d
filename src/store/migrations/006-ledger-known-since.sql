-- oldest-program: 0.1.0
--
-- What the ledger of schedules has forgotten.

-- Everything that was recorded from this moment on is still on record; earlier rows may have been forgotten. It only
-- grows, so it stays true when the ledger is to be kept for longer than before.
ALTER TABLE punctual.cluster ADD COLUMN ledger_known_since bigint NOT NULL DEFAULT 0;
