import type { ComponentChildren } from 'preact';
import { Copied } from './copied.js';

interface EmptyStateProps {
  readonly title: string;
  /** What somebody would type next. */
  readonly command?: string;
  readonly children?: ComponentChildren;
}

/** What stands where nothing is to show: why, and what to do next. */
export function EmptyState({ title, command, children }: EmptyStateProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
      {command !== undefined && <Copied text={command} />}
    </div>
  );
}
