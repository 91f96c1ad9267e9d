import { chain } from '../core/audit.js';
import { Loop, logFailure } from '../core/loop.js';
import { chainEntries, readUnchained, removeEntries } from '../store/audit.js';
import type { LeaderState } from './leader-state.js';

/** How long new entries are gathered. */
const GATHER_MS = 1_000;
/** When an action whose end was not recorded is given up: far longer than any takes. */
const GIVE_UP_MS = 60_000;

/**
 * Gives the entries of the audit their places in the chain of the shard. Entries are written without a place, because a chain in
 * their own transactions would make all steering wait for each other. The order of the chain is that in which this pass finds
 * the entries: one whose transaction is committed late comes later, and none is passed over.
 *
 * There is nothing to read while no entry is written. Entries of other nodes are found once a minute, by `found`.
 */
export class AuditChain {
  private readonly loop: Loop;
  /** Whether there may be entries without a place; also at the beginning of a term, because its predecessor may have left some. */
  private mayHaveEntries = true;

  constructor(private readonly state: LeaderState) {
    state.noteEntry = () => {
      this.mayHaveEntries = true;
    };
    this.loop = new Loop({
      name: 'chain the audit',
      everyMs: GATHER_MS,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'the audit could not be chained'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  /** Takes what the upkeep has found: whether entries have no place, and the time of the oldest entry. */
  async found({
    unchained,
    oldest,
  }: {
    readonly unchained: boolean;
    readonly oldest: number | null;
  }): Promise<void> {
    if (unchained) this.mayHaveEntries = true;
    const { state } = this;
    const before = state.clock.now() - state.config.auditRetention;
    if (oldest === null || oldest >= before) return;
    while (await state.write(() => removeEntries(state.hot, state.term, before)));
  }

  /** Chains everything that can be chained, in portions. */
  async runOnce(): Promise<void> {
    const { state } = this;
    while (this.mayHaveEntries && !state.isOver) {
      this.mayHaveEntries = false;
      try {
        const { head, entries, more } = await readUnchained(
          state.hot,
          state.term.epoch,
          state.clock.now() - GIVE_UP_MS,
        );
        if (more) this.mayHaveEntries = true;
        if (entries.length === 0) return;
        const links = chain(state.term.shard, head, entries);
        await state.write(() => chainEntries(state.hot, state.term, head, entries, links));
      } catch (error) {
        this.mayHaveEntries = true;
        throw error;
      }
    }
  }
}
