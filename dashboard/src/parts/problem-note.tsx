import type { Problem } from '../api/problem.js';
import type { Resource } from '../api/resource.js';

interface ProblemNoteProps {
  readonly problem: Problem | null;
  readonly onRetry?: () => void;
}

/** Why something could not be read; nothing if it could. */
export function ProblemNote({ problem, onRetry }: ProblemNoteProps) {
  // The sign-in lies over the page then.
  if (!problem || problem.status === 401) return null;
  return (
    <p class="notice notice-bad" role="alert">
      {problem.message}{' '}
      {onRetry && (
        <button type="button" class="link" onClick={onRetry}>
          Try again
        </button>
      )}
    </p>
  );
}

/** The same for a resource, which goes on showing what was read before. */
export function ResourceProblem({ resource }: { readonly resource: Resource<unknown> }) {
  return <ProblemNote problem={resource.problem.value} onRetry={() => void resource.refresh()} />;
}
