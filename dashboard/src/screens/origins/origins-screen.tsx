import { Coming } from '../coming.js';

/** Origins with their circuits and limits. */
export default function OriginsScreen() {
  return (
    <Coming
      title="HTTP targets"
      words="Origins with their circuits and limits."
      command="punctual origin list"
    />
  );
}
