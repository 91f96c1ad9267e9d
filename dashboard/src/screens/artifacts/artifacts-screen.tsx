import { Coming } from '../coming.js';

/** Uploaded programs that jobs run. */
export default function ArtifactsScreen() {
  return <Coming title="Artifacts" words="Uploaded programs that jobs run." command="punctual --help" />;
}
