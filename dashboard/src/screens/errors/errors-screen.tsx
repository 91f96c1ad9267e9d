import { Coming } from '../coming.js';

/** Failed jobs, grouped by what their errors have in common. */
export default function ErrorsScreen() {
  return (
    <Coming
      title="Errors"
      words="Failed jobs, grouped by what their errors have in common."
      command="punctual job errors"
    />
  );
}
