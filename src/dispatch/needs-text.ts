import type { NeedsInfo } from './directory.js';

/** Needs as the end of a sentence about workers. */
export function describeNeeds(needs: Omit<NeedsInfo, 'id'>): string {
  const labels = Object.entries(needs.labels).map(([name, value]) => `${name}=${value}`);
  const target =
    needs.target === 'handler' ? ` with handler ${needs.handler}` : ` with target ${needs.target}`;
  return target + (labels.length > 0 ? ` and labels ${labels.join(', ')}` : '');
}
