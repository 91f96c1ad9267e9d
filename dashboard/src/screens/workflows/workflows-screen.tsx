import { Coming } from '../coming.js';

/** Workflows, newest first. */
export default function WorkflowsScreen() {
  return <Coming title="Workflows" words="Workflows, newest first." command="punctual workflow list" />;
}
