interface SparklineProps {
  readonly values: readonly number[];
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly tone?: 'accent' | 'bad';
}

const WIDTH = 100;
const HEIGHT = 24;
const EDGE = 2;

/** A small line without axes. */
export function Sparkline({ values, label, tone = 'accent' }: SparklineProps) {
  const most = values.reduce((most, value) => Math.max(most, value), 1);
  const step = WIDTH / Math.max(1, values.length - 1);
  const y = (value: number) => HEIGHT - EDGE - (value / most) * (HEIGHT - 2 * EDGE);
  const line = values.map((value, i) => `${(i * step).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return (
    <svg
      class={`sparkline sparkline-${tone}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
      <polyline points={line} />
    </svg>
  );
}
