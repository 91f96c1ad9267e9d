import type { ListedWorkflowDefinition, StoredWorkflowDefinition } from '../core/workflow.js';
import { drawGraph } from './graph-drawing.js';
import { type Cell, type Column, type Output, relativeTime } from './output.js';

/** Definitions of workflows as text. */

const COLUMNS: readonly Column[] = [
  { header: 'DEFINITION', shrink: 'name' },
  { header: 'VERSION', align: 'right' },
  { header: 'STEPS', align: 'right' },
  { header: 'ON FAILURE', drop: 2 },
  { header: 'CHANGED' },
  { header: 'BY', shrink: 'name', drop: 1 },
];

/** A table of definitions. */
export function definitionTable(
  output: Output,
  definitions: readonly ListedWorkflowDefinition[],
  now: number,
): string {
  const rows = definitions.map(({ name, version, steps, onFailure, createdAt, createdBy }): Cell[] => [
    ...[name, String(version), String(steps), onFailure, relativeTime(createdAt, now), createdBy],
  ]);
  return output.table(COLUMNS, rows);
}

/** One version of a definition, with its graph. */
export function definitionDetails(output: Output, definition: StoredWorkflowDefinition): string {
  const { name, version, newest, versions, onFailure, running, createdAt, createdBy, jobs } = definition;
  const steps = Object.entries(jobs).map(([step, { after = [], runIf = 'all-succeeded' }]) => ({
    ...{ name: step, after, runIf, state: 'pending' as const },
  }));
  const details = output.details([
    ['definition', name],
    ['version', `${version}${newest ? '' : ' (not the newest)'}`],
    ['kept', versions.join(', ')],
    ['on failure', onFailure],
    ['running', running],
    ['created', `${createdAt} by ${createdBy}`],
  ]);
  return `${details}\n${drawGraph(steps, { ...output.screen, isPlan: true })}`;
}
