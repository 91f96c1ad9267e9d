import { Coming } from '../coming.js';

/** Queues with their depth, age and limits. */
export default function QueuesScreen() {
  return (
    <Coming title="Queues" words="Queues with their depth, age and limits." command="punctual queue list" />
  );
}
