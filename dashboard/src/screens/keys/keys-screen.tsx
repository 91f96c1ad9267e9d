import { Coming } from '../coming.js';

/** Keys and what they may do. */
export default function KeysScreen() {
  return <Coming title="Keys" words="Keys and what they may do." command="punctual key list" />;
}
