import { createHash } from 'node:crypto';
import type { Labels } from '../core/job.js';
import type { WorkerRegistration } from '../core/wire.js';
import type { NeedsInfo } from './directory.js';

/** What workers of one kind can run: whose jobs, on which targets, of which tasks, with which labels. */
export class Ability {
  readonly labels: Labels;
  readonly tasks: ReadonlySet<string>;
  readonly targets: ReadonlySet<string>;
  /** Equal for workers with equal abilities. */
  readonly key: string;

  constructor(
    /** Null serves all tenants. */
    readonly tenant: string | null,
    registration: Pick<WorkerRegistration, 'targets' | 'tasks' | 'labels'>,
  ) {
    this.targets = new Set(registration.targets);
    this.tasks = new Set(registration.tasks);
    this.labels = registration.labels;
    const labels = Object.entries(this.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    const whole = JSON.stringify([tenant, [...this.targets].sort(), [...this.tasks].sort(), labels]);
    this.key = createHash('sha256').update(whole).digest('base64');
  }

  servesTenant(tenant: string): boolean {
    return this.tenant === null || this.tenant === tenant;
  }

  /** Whether workers with this ability can run jobs with these needs. */
  hasAllOf(needs: Omit<NeedsInfo, 'id'>): boolean {
    if (!this.servesTenant(needs.tenant) || !this.targets.has(needs.target)) return false;
    if (needs.target === 'handler' && !this.tasks.has(needs.handler)) return false;
    return Object.entries(needs.labels).every(([name, value]) => this.labels[name] === value);
  }
}
