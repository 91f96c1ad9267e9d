import type { Ability } from './ability.js';
import type { Directory, NeedsInfo } from './directory.js';
import { NeedsIndex } from './needs-index.js';
import type { WorkerSession } from './worker-session.js';

/** Workers of equal ability, and the needs that they meet. */
interface Kind {
  readonly ability: Ability;
  sessions: number;
  readonly meets: Set<number>;
}

/** Needs of jobs in memory, and the kinds of workers that meet them. */
interface Asked {
  readonly info: NeedsInfo;
  readonly metBy: Set<string>;
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Which workers can run which jobs. Jobs that no worker can run take no part in the round robin: however many kinds of
 * them there are, they cost nothing when a job is chosen or when a worker joins or leaves.
 */
export class Fitness {
  private readonly asked = new Map<number, Asked>();
  private readonly index = new NeedsIndex();
  private readonly kinds = new Map<string, Kind>();
  /** The kinds by the tenant whose jobs they run, so that workers are not compared with needs of other tenants. */
  private readonly kindsByTenant = new Map<string | null, Set<Kind>>();

  constructor(private readonly directory: Directory) {}

  /** Whether any worker can run jobs with such needs. */
  isServed(needs: number): boolean {
    return (this.ask(needs)?.metBy.size ?? 0) > 0;
  }

  /** The keys of the abilities that meet such needs. */
  metBy(needs: number): ReadonlySet<string> {
    return this.ask(needs)?.metBy ?? NOBODY;
  }

  /** Whether the worker can run jobs with such needs. */
  fits(session: WorkerSession, needs: number): boolean {
    return this.ask(needs)?.metBy.has(session.ability.key) ?? false;
  }

  /** Adds a worker; answers with the needs that are served now and were not before. */
  join(session: WorkerSession): Set<number> {
    const turned = new Set<number>();
    const { ability } = session;
    const known = this.kinds.get(ability.key);
    if (known) {
      known.sessions += 1;
      session.ability = known.ability;
      return turned;
    }
    const kind: Kind = { ability, sessions: 1, meets: new Set() };
    this.kinds.set(ability.key, kind);
    const kinds = this.kindsByTenant.get(ability.tenant);
    if (kinds) kinds.add(kind);
    else this.kindsByTenant.set(ability.tenant, new Set([kind]));
    for (const info of this.index.candidates(ability)) {
      if (this.compare(this.asked.get(info.id)!, kind) === 1) turned.add(info.id);
    }
    return turned;
  }

  /** Removes a worker; answers with the needs that are no longer served. */
  leave({ ability }: WorkerSession): Set<number> {
    const turned = new Set<number>();
    const kind = this.kinds.get(ability.key);
    if (!kind) return turned;
    kind.sessions -= 1;
    if (kind.sessions > 0) return turned;
    this.kinds.delete(ability.key);
    const kinds = this.kindsByTenant.get(ability.tenant)!;
    kinds.delete(kind);
    if (kinds.size === 0) this.kindsByTenant.delete(ability.tenant);
    for (const id of kind.meets) {
      const { metBy } = this.asked.get(id)!;
      metBy.delete(ability.key);
      if (metBy.size === 0) turned.add(id);
    }
    return turned;
  }

  /** Forgets needs that no job in memory has. */
  forget(needs: number): void {
    const asked = this.asked.get(needs);
    if (!asked) return;
    this.asked.delete(needs);
    this.index.remove(asked.info);
    for (const key of asked.metBy) this.kinds.get(key)?.meets.delete(needs);
  }

  private ask(needs: number): Asked | undefined {
    const known = this.asked.get(needs);
    if (known) return known;
    const info = this.directory.needsOf(needs);
    if (!info) return undefined;
    const asked: Asked = { info, metBy: new Set() };
    this.asked.set(needs, asked);
    this.index.add(info);
    for (const tenant of [info.tenant, null]) {
      for (const kind of this.kindsByTenant.get(tenant) ?? []) this.compare(asked, kind);
    }
    return asked;
  }

  /** Notes whether the kind meets the needs; answers with the number of kinds that do, zero if this one does not. */
  private compare({ info, metBy }: Asked, { ability, meets }: Kind): number {
    if (!ability.hasAllOf(info)) return 0;
    metBy.add(ability.key);
    meets.add(info.id);
    return metBy.size;
  }
}
