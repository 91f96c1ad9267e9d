import type { Dispatcher } from '../dispatch/dispatcher.js';
import { noLeader } from '../dispatch/leader-state.js';
import { LocalEnds } from './local-ends.js';

/** Jobs that another node wants to hear of, and no more. */
interface EndsChange {
  /** Counts the changes; said on the line once this one is taken note of. */
  readonly change: number;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

interface Line {
  readonly ends: LocalEnds;
  readonly say: (said: number | readonly string[]) => void;
}

/**
 * The lines on which this node, while it leads, tells other nodes which jobs end. Each other node opens one, and says for
 * which jobs its clients wait; closing a line forgets them.
 */
export class EndLines {
  private readonly lines = new Map<string, Line>();

  constructor(private readonly leader: () => Dispatcher | undefined) {}

  /** Opens a line; answers with what aborts when there is no more to come. */
  open(id: string, say: Line['say']): AbortSignal {
    const dispatcher = this.leader();
    if (!dispatcher) throw noLeader();
    const ends = new LocalEnds(dispatcher, say);
    this.lines.set(id, { ends, say });
    return ends.over;
  }

  /** Changes of which jobs a line tells. */
  async change(id: string, { change, add, remove }: EndsChange): Promise<void> {
    const line = this.lines.get(id);
    if (!line) throw noLeader();
    await line.ends.change(add, remove);
    line.say(change);
  }

  /** Forgets a line. */
  close(id: string): void {
    this.lines.get(id)?.ends.close();
    this.lines.delete(id);
  }
}
