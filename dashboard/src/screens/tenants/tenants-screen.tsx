import { Coming } from '../coming.js';

/** Tenants with their shares and quotas. */
export default function TenantsScreen() {
  return (
    <Coming title="Tenants" words="Tenants with their shares and quotas." command="punctual tenant list" />
  );
}
