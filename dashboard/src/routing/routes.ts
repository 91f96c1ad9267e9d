import type { ComponentType } from 'preact';
import type { KeyScope } from '../../../src/core/access.js';

/** The screens: their addresses, their places in the navigation, and who is shown them. Each is loaded when it is opened. */

/** What a screen is given: the values of the named segments of its path. */
export interface ScreenProps {
  readonly params: Readonly<Record<string, string>>;
}

type Screen = ComponentType<ScreenProps>;

/** One screen. */
export interface ScreenRoute {
  /** Segments; one that begins with `:` is a parameter. */
  readonly path: string;
  /** Stands in the title of the window and, unless it is `hidden`, in the navigation. */
  readonly title: string;
  readonly load: () => Promise<{ readonly default: Screen }>;
  /** The group of the navigation that it stands in; missing if it is reached from another screen. */
  readonly group?: 'Work' | 'Timetable' | 'Machinery' | 'Access';
  /** The letter after `g` that leads here. */
  readonly letter?: string;
  /** What a key must be able to do; default `read`. */
  readonly scope?: KeyScope | 'operator';
}

export const ROUTES: readonly ScreenRoute[] = [
  {
    ...{ path: '/', title: 'Home', group: 'Work', letter: 'h' },
    load: () => import('../screens/home/home-screen.js'),
  },
  {
    ...{ path: '/jobs', title: 'Jobs', group: 'Work', letter: 'j' },
    load: () => import('../screens/jobs/jobs-screen.js'),
  },
  { path: '/jobs/:id', title: 'Job', load: () => import('../screens/jobs/job-screen.js') },
  {
    ...{ path: '/errors', title: 'Errors', group: 'Work', letter: 'e' },
    load: () => import('../screens/errors/errors-screen.js'),
  },
  {
    ...{ path: '/workflows', title: 'Workflows', group: 'Work', letter: 'w' },
    load: () => import('../screens/workflows/workflows-screen.js'),
  },
  {
    path: '/workflows/:id',
    title: 'Workflow',
    load: () => import('../screens/workflows/workflow-screen.js'),
  },
  {
    ...{ path: '/batches', title: 'Batches', group: 'Work', letter: 'b' },
    load: () => import('../screens/batches/batches-screen.js'),
  },
  { path: '/batches/:id', title: 'Batch', load: () => import('../screens/batches/batch-screen.js') },
  {
    ...{ path: '/submit', title: 'Submit', group: 'Work', letter: 'n', scope: 'submit' },
    load: () => import('../screens/submit/submit-screen.js'),
  },
  {
    ...{ path: '/schedules', title: 'Schedules', group: 'Timetable', letter: 's' },
    load: () => import('../screens/schedules/schedules-screen.js'),
  },
  {
    ...{ path: '/schedules/new', title: 'New schedule', scope: 'admin' },
    load: () => import('../screens/schedules/new-schedule-screen.js'),
  },
  {
    ...{ path: '/schedules/:name/edit', title: 'Edit schedule', scope: 'admin' },
    load: () => import('../screens/schedules/edit-schedule-screen.js'),
  },
  {
    path: '/schedules/:name',
    title: 'Schedule',
    load: () => import('../screens/schedules/schedule-screen.js'),
  },
  {
    ...{ path: '/queues', title: 'Queues', group: 'Machinery', letter: 'q' },
    load: () => import('../screens/queues/queues-screen.js'),
  },
  { path: '/queues/:name', title: 'Queue', load: () => import('../screens/queues/queue-screen.js') },
  {
    ...{ path: '/workers', title: 'Workers', group: 'Machinery', letter: 'k' },
    load: () => import('../screens/workers/workers-screen.js'),
  },
  { path: '/workers/:id', title: 'Worker', load: () => import('../screens/workers/worker-screen.js') },
  {
    ...{ path: '/origins', title: 'HTTP targets', group: 'Machinery', letter: 'o' },
    load: () => import('../screens/origins/origins-screen.js'),
  },
  {
    ...{ path: '/artifacts', title: 'Artifacts', group: 'Machinery', letter: 'f' },
    load: () => import('../screens/artifacts/artifacts-screen.js'),
  },
  {
    path: '/artifacts/:id',
    title: 'Artifact',
    load: () => import('../screens/artifacts/artifact-screen.js'),
  },
  {
    ...{ path: '/cluster', title: 'Cluster', group: 'Machinery', letter: 'c' },
    load: () => import('../screens/cluster/cluster-screen.js'),
  },
  {
    ...{ path: '/tenants', title: 'Tenants', group: 'Access', letter: 't' },
    load: () => import('../screens/tenants/tenants-screen.js'),
  },
  {
    ...{ path: '/keys', title: 'Keys', group: 'Access', letter: 'y', scope: 'admin' },
    load: () => import('../screens/keys/keys-screen.js'),
  },
  {
    ...{ path: '/secrets', title: 'Secrets', group: 'Access', letter: 'x' },
    load: () => import('../screens/secrets/secrets-screen.js'),
  },
  {
    ...{ path: '/audit', title: 'Audit', group: 'Access', letter: 'a', scope: 'admin' },
    load: () => import('../screens/audit/audit-screen.js'),
  },
];

/** A route that fits a path, with the values of its parameters. */
export interface Match extends ScreenProps {
  readonly route: ScreenRoute;
}

/** The first route that fits a path; null if there is none. */
export function matchRoute(path: string, routes: readonly ScreenRoute[] = ROUTES): Match | null {
  const segments = segmentsOf(path);
  for (const route of routes) {
    const params = paramsOf(segmentsOf(route.path), segments);
    if (params) return { route, params };
  }
  return null;
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i]!;
    if (part.startsWith(':')) {
      const value = decoded(segment);
      if (value === null) return null;
      params[part.slice(1)] = value;
    } else if (part !== segment) return null;
  }
  return params;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
