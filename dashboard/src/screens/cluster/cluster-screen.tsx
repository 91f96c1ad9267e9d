import { Coming } from '../coming.js';

/** Terms, nodes, pause and forecast. */
export default function ClusterScreen() {
  return (
    <Coming title="Cluster" words="Terms, nodes, pause and forecast." command="punctual cluster status" />
  );
}
