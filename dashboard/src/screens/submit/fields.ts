import type { Problem } from '../../api/problem.js';
import type { Draft } from './draft.js';

/** What every group of fields of the form is given. */
export interface FieldsProps {
  readonly draft: Draft;
  readonly onChange: (change: Partial<Draft>) => void;
  readonly problem: Problem | null;
}
