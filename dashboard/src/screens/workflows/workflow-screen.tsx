import { Coming } from '../coming.js';

/** The graph of one workflow and its timeline. */
export default function WorkflowScreen() {
  return (
    <Coming
      title="Workflow"
      words="The graph of one workflow and its timeline."
      command="punctual workflow get ID"
    />
  );
}
