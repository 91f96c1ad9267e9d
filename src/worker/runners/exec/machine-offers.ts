import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseOf, CONTROLLERS, whyNotEntered } from './control-groups.js';
import { launcherProgram } from './host/launcher-program.js';
import type { Found, Machine } from './machine.js';

/** What a machine offers to programs, in words for people, with what to do about what is missing. */

/** One thing that it offers, or does not; a warning is for what many programs would miss. */
export interface Offer {
  readonly name: string;
  readonly status: 'ok' | 'warn';
  readonly detail: string;
  readonly advice?: string;
}

/** What can be told of a machine without running anything. `groups` is where attempts would have their control groups. */
export function offeredBy(machine: Machine, groups: Found<string>): readonly Offer[] {
  return [levels(machine), ends(machine), limits(machine, groups)];
}

/** Where a worker would have the control groups of its attempts. What is made to try that is removed again. */
export async function lookForControlGroups(setting: string): Promise<Found<string>> {
  if (setting === 'off') return { why: 'they are switched off' };
  try {
    const [mounts, own] = ['mountinfo', 'cgroup'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8'));
    const base = baseOf(setting, { mounts: mounts!, own: own! });
    if ('why' in base) return base;
    const offered = readFileSync(join(base.use, 'cgroup.controllers'), 'utf8').split(/\s+/);
    const missing = CONTROLLERS.filter((each) => !offered.includes(each));
    if (missing.length > 0) return { why: `${base.use} offers no ${missing.join(', ')}` };
    const why = await whyNotEntered(base.use);
    return why === null ? base : { why: `${base.use}: ${why}` };
  } catch (error) {
    return { why: (error as Error).message };
  }
}

function levels({ bubblewrap, namespaces }: Machine): Offer {
  const name = 'isolation of programs';
  if ('use' in bubblewrap) return { name, status: 'ok', detail: 'none, bubblewrap' };
  const { why } = bubblewrap;
  if ('use' in namespaces) {
    const detail = `none, namespaces; not bubblewrap: ${why}`;
    return { name, status: 'ok', detail, advice: INSTALL };
  }
  const detail = `none only: ${why}; namespaces: ${namespaces.why}`;
  return { name, status: 'warn', detail, advice: `${INSTALL} ${ALLOW}` };
}

const INSTALL =
  'Install bubblewrap: it starts programs faster than namespaces alone, in an empty root, and filters calls to the kernel.';
const ALLOW =
  'User namespaces must be allowed: see kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns and user.max_user_namespaces (sysctl); a container needs a seccomp profile that permits unshare. Until then, programs with isolation required are refused.';

function ends({ users, hostNamespace, ownNamespace }: Machine): Offer {
  const name = 'ends of programs';
  const known = [
    ...('use' in users ? ['users of their own'] : []),
    ...('use' in hostNamespace || 'use' in ownNamespace ? ['PID namespaces'] : []),
  ];
  if (known.length > 0) return { name, status: 'ok', detail: `whole, by ${known.join(' and ')}` };
  const why = 'why' in ownNamespace ? ownNamespace.why : '';
  const detail = `what leaves its process group may survive: no users of their own, and no PID namespaces: ${why}`;
  return { name, status: 'warn', detail, advice: `Run workers as root, or allow user namespaces.` };
}

function limits({ prlimit, architecture, users }: Machine, groups: Found<string>): Offer {
  const name = 'limits of programs';
  const tools = prlimit !== null || launcherProgram(architecture) !== null;
  const own = tools
    ? `each process by rlimits${'use' in users ? ', counts by users' : ''}`
    : 'none by the kernel';
  if ('use' in groups) {
    return {
      name,
      status: 'ok',
      detail: `${own}; memory, processes and cpus by control groups below ${groups.use}`,
    };
  }
  const detail = `${own}; memory is measured, cpus are not limited: no control groups (${groups.why})`;
  return { name, status: 'ok', detail, advice: DELEGATE };
}

const DELEGATE =
  'Give workers a control group of version 2: Delegate=yes in their systemd unit, or make one with memory, pids and cpu and name it with PUNCTUAL_CONTROL_GROUP.';
