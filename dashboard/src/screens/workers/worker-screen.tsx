import { Coming } from '../coming.js';

/** One worker and what it runs. */
export default function WorkerScreen() {
  return <Coming title="Worker" words="One worker and what it runs." command="punctual worker get ID" />;
}
