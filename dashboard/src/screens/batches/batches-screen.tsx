import { Coming } from '../coming.js';

/** Batches, newest first. */
export default function BatchesScreen() {
  return <Coming title="Batches" words="Batches, newest first." command="punctual batch list" />;
}
