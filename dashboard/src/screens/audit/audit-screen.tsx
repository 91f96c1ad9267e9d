import { Coming } from '../coming.js';

/** Who changed what, and when. */
export default function AuditScreen() {
  return <Coming title="Audit" words="Who changed what, and when." command="punctual audit list" />;
}
