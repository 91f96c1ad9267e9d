import { Coming } from '../coming.js';

/** One schedule with its ledger. */
export default function ScheduleScreen() {
  return (
    <Coming title="Schedule" words="One schedule with its ledger." command="punctual schedule get NAME" />
  );
}
