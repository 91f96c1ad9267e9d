import type { CriticalPath } from '../../../../src/core/workflow.js';
import { durationText } from '../../parts/duration-text.js';
import './workflows.css';

const MOST_SHOWN = 40;

/** The steps that decide when the workflow ends, each where it lies in time: how long it waited, and how long it ran. */
export function CriticalPathBars({ path }: { readonly path: CriticalPath }) {
  const { steps, totalMs, waitedMs, ranMs, left } = path;
  const whole = Math.max(1, totalMs);
  let passed = 0;
  const spans = steps.map((step) => {
    const from = passed;
    passed += step.waitedMs + step.ranMs;
    return { ...step, from };
  });
  return (
    <>
      <p class="soft">
        {durationText(totalMs)} in all: {durationText(ranMs)} running, {durationText(waitedMs)} waiting.
      </p>
      <div class="path-bars">
        {spans.slice(0, MOST_SHOWN).map(({ name, from, waitedMs: waited, ranMs: ran }) => (
          <Bar key={name} {...{ name, from, waited, ran, whole }} />
        ))}
      </div>
      {steps.length + left > MOST_SHOWN && <p class="soft">and {steps.length + left - MOST_SHOWN} more</p>}
    </>
  );
}

interface BarProps {
  readonly name: string;
  readonly from: number;
  readonly waited: number;
  readonly ran: number;
  readonly whole: number;
}

function Bar({ name, from, waited, ran, whole }: BarProps) {
  const share = (ms: number) => (ms / whole) * 100;
  return (
    <>
      <span class="path-name" title={name}>
        {name}
      </span>
      <svg
        viewBox="0 0 100 12"
        preserveAspectRatio="none"
        role="img"
        aria-label={`waited ${durationText(waited)}, ran ${durationText(ran)}`}
      >
        <rect class="path-waited" x={share(from)} y="5" width={share(waited)} height="2" />
        <rect class="path-ran" x={share(from + waited)} y="1" width={Math.max(0.4, share(ran))} height="10" />
      </svg>
      <span class="figure">{durationText(ran)}</span>
    </>
  );
}
