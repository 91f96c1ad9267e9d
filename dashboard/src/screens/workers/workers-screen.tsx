import { Coming } from '../coming.js';

/** Workers with their slots and signs of life. */
export default function WorkersScreen() {
  return (
    <Coming
      title="Workers"
      words="Workers with their slots and signs of life."
      command="punctual worker list"
    />
  );
}
