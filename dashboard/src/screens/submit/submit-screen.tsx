import { Coming } from '../coming.js';

/** A form for a job or a schedule. */
export default function SubmitScreen() {
  return (
    <Coming title="Submit" words="A form for a job or a schedule." command="punctual job submit --help" />
  );
}
