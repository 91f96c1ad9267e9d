-- oldest-program: 0.1.0
--
-- Workflows that are steps of others name artifacts until they start. An index that few rows are in; no row is rewritten.
CREATE INDEX steps_with_graphs ON punctual.steps (tenant) WHERE inner_graph IS NOT NULL AND outcome IS NULL;
