import { Coming } from '../coming.js';

/** A form with a preview of the occurrences. */
export default function NewScheduleScreen() {
  return (
    <Coming
      title="New schedule"
      words="A form with a preview of the occurrences."
      command="punctual schedule create --help"
    />
  );
}
