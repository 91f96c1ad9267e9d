-- oldest-program: 0.1.0
--
-- False while a live row is just what its submission stored. The node that stored a job can hand it over without
-- reading it back; a claim that relies on that memory takes only what nobody has touched since.
ALTER TABLE punctual.jobs ADD COLUMN edited boolean NOT NULL DEFAULT false;
