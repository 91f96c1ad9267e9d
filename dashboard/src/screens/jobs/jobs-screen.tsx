import { Coming } from '../coming.js';

/** Jobs, filtered and changed together. */
export default function JobsScreen() {
  return <Coming title="Jobs" words="Jobs, filtered and changed together." command="punctual job list" />;
}
