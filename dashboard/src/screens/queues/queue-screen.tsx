import { Coming } from '../coming.js';

/** One queue with its history. */
export default function QueueScreen() {
  return <Coming title="Queue" words="One queue with its history." command="punctual queue get NAME" />;
}
