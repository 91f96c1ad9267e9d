import { Coming } from '../coming.js';

/** How things are. */
export default function HomeScreen() {
  return <Coming title="Home" words="How things are." command="punctual cluster status" />;
}
