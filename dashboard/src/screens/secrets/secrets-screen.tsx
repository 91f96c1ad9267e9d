import { Coming } from '../coming.js';

/** Secrets by name, without their values. */
export default function SecretsScreen() {
  return (
    <Coming title="Secrets" words="Secrets by name, without their values." command="punctual secret list" />
  );
}
