import { Coming } from '../coming.js';

/** One job with its attempts, payload, result and log. */
export default function JobScreen() {
  return (
    <Coming
      title="Job"
      words="One job with its attempts, payload, result and log."
      command="punctual job get ID"
    />
  );
}
