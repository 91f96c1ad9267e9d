-- oldest-program: 0.1.0
--
-- Steps that steps add while they run, and workflows that are steps of others. New columns without values; no row is
-- rewritten.

ALTER TABLE punctual.steps
  -- The step that added it while it ran; null if it was submitted with its workflow.
  ADD COLUMN added_by uuid,
  -- What is submitted as a workflow of its own when the step is released, as JSON, how many steps that and the workflows inside
  -- it have, and the id of that workflow.
  ADD COLUMN inner_graph json,
  ADD COLUMN inner_steps int NOT NULL DEFAULT 0,
  ADD COLUMN inner_workflow uuid;

ALTER TABLE punctual.workflows
  -- The step of another workflow that it is, and how many workflows are around it.
  ADD COLUMN outer_step uuid,
  ADD COLUMN depth int NOT NULL DEFAULT 0;
