import { Coming } from '../coming.js';

/** Schedules with their next occurrences. */
export default function SchedulesScreen() {
  return (
    <Coming
      title="Schedules"
      words="Schedules with their next occurrences."
      command="punctual schedule list"
    />
  );
}
