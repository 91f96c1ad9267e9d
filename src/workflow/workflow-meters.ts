import type { WorkflowFigures } from '../core/figures.js';
import { WideHistogram } from '../core/histogram.js';

/** What a leader measures of workflows during one term. */
export class WorkflowMeters {
  /** Set by the executor; how many ends are not counted yet. */
  endsPending: () => number = () => 0;
  private readonly time = new WideHistogram();
  private readonly release = new WideHistogram();

  /** A workflow has ended. */
  ended(tookMs: number): void {
    this.time.add(Math.max(0, tookMs));
  }

  /** A step was released so long after the end that it waited for. */
  released(afterMs: number): void {
    this.release.add(Math.max(0, afterMs));
  }

  figures(): WorkflowFigures {
    const copy = ({ counts, sumMs }: WideHistogram) => ({ counts: [...counts], sumMs });
    return { time: copy(this.time), release: copy(this.release) };
  }
}
