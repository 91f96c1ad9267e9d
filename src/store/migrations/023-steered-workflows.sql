-- oldest-program: 0.1.0
--
-- Steering of workflows: holding them, and running them again as new ones. New columns with constant values; no row is
-- rewritten.

-- The workflow that this one repeats.
ALTER TABLE punctual.workflows ADD COLUMN rerun_of uuid;

-- `parked`: its job may run and is blocked only because the workflow is on hold. `hold`: it was submitted on hold.
ALTER TABLE punctual.steps ADD COLUMN parked boolean NOT NULL DEFAULT false, ADD COLUMN hold boolean NOT NULL DEFAULT false;
