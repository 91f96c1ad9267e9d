import { Coming } from '../coming.js';

/** The members of one batch and what they wait for. */
export default function BatchScreen() {
  return (
    <Coming
      title="Batch"
      words="The members of one batch and what they wait for."
      command="punctual batch get ID"
    />
  );
}
