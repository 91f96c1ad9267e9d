import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { shownTheme } from '../shell/theme.js';
import { chartColours } from './chart-colours.js';
import { loadPlot } from './load-plot.js';

/** One line of a chart. */
export interface Series {
  readonly name: string;
  /** One for each moment; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** The name of a colour in `tokens.css`, such as `--chart-1`. */
  readonly colour: string;
  /** Whether the area below the line is filled. */
  readonly isFilled?: boolean;
  /** Whether each value is a point, for what is not known at every moment: a line needs two of them. */
  readonly hasPoints?: boolean;
}

interface ChartProps {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** How a value is written at the axis and in the legend. */
  readonly format: (value: number) => string;
  /** The same where there is less room; default `format`. */
  readonly axisFormat?: (value: number) => string;
  readonly heightPx?: number;
  /** Whether the values are drawn as bars. */
  readonly areBars?: boolean;
  /** Values from which on everything is one distance to the next tenfold; default a plain scale. */
  readonly isLogarithmic?: boolean;
}

const AXIS_WIDTH_PX = 52;
const TIMES_HEIGHT_PX = 24;

/** Lines over time. What it draws with comes with the first chart that is shown. */
export function Chart(props: ChartProps) {
  const { label, series, format, heightPx = 180 } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const shape = JSON.stringify([series.map(({ name, colour }) => [name, colour]), props.areBars, heightPx]);
  const data = dataOf(props);
  const newest = useRef(data);
  newest.current = data;

  // The plot is made anew when its shape changes, and given data below.
  useEffect(() => {
    let isOver = false;
    let observer: ResizeObserver | undefined;
    void loadPlot().then((Plot) => {
      if (isOver || !place.current) return;
      const width = place.current.clientWidth;
      plot.current = new Plot(optionsOf(Plot, props, width, heightPx, setAt), newest.current, place.current);
      observer = new ResizeObserver(([entry]) => {
        const { width: next } = entry!.contentRect;
        if (next > 0) plot.current?.setSize({ width: next, height: heightPx });
      });
      observer.observe(place.current);
    });
    return () => {
      isOver = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(newest.current);
  }, [data]);

  const theme = shownTheme();
  // Colours on a canvas are read again when the theme changes.
  useEffect(() => {
    plot.current?.redraw(false, true);
  }, [theme]);

  return (
    <figure class="chart" aria-label={`${label}. ${summaryOf(props)}`}>
      <div ref={place} class="chart-canvas" aria-hidden="true" />
      <figcaption class="chart-legend">
        {series.map(({ name, values, colour }) => (
          <span key={name}>
            <LegendMark colour={colour} /> {name}{' '}
            {(at !== null || !props.areBars) && <b>{valueText(values, at, format)}</b>}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function LegendMark({ colour }: { readonly colour: string }) {
  return (
    <svg class="chart-mark" viewBox="0 0 10 10" aria-hidden="true">
      <rect width="10" height="10" rx="2" fill={`var(${colour})`} />
    </svg>
  );
}

function valueText(
  values: ChartProps['series'][number]['values'],
  at: number | null,
  format: ChartProps['format'],
) {
  const value = at === null ? values.findLast((each) => each !== null) : values[at];
  return value === null || value === undefined ? '–' : format(value);
}

function summaryOf({ series, format }: ChartProps): string {
  return series.map(({ name, values }) => `${name}: ${valueText(values, null, format)}`).join(', ');
}

function dataOf({ times, series }: ChartProps): uPlot.AlignedData {
  return [times as number[], ...series.map(({ values }) => values as (number | null)[])];
}

function optionsOf(
  Plot: typeof uPlot,
  { series, format, axisFormat = format, areBars = false, isLogarithmic = false }: ChartProps,
  width: number,
  height: number,
  onCursor: (at: number | null) => void,
): uPlot.Options {
  const colours = () => chartColours(shownTheme());
  const axis: uPlot.Axis = {
    stroke: () => colours().axis,
    grid: { stroke: () => colours().grid, width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const bars = areBars ? Plot.paths.bars!({ size: [0.8, 20] }) : null;
  return {
    ...{ width, height },
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true },
      y: isLogarithmic
        ? { distr: 3, range: (_, least, most) => tenfolds(least ?? 1, most ?? 10) }
        : { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: TIMES_HEIGHT_PX, values: timeLabels },
      {
        ...axis,
        size: AXIS_WIDTH_PX,
        ...(isLogarithmic && { splits: (_, __, least, most) => powersOfTen(least, most) }),
        values: (_, values) => values.map((value) => (value === null ? '' : axisFormat(value))),
      },
    ],
    series: [
      {},
      ...series.map(({ name, colour, isFilled = false, hasPoints = false }) => ({
        label: name,
        stroke: () => colours().of(colour),
        width: areBars ? 0 : 1.5,
        points: { show: hasPoints, size: 4, fill: () => colours().of(colour) },
        ...((isFilled || areBars) && { fill: () => colours().of(colour) + (areBars ? '' : '22') }),
        ...(bars && { paths: bars }),
      })),
    ],
    hooks: { setCursor: [(self) => onCursor(self.cursor.idx ?? null)] },
  };
}

/** A logarithmic scale from a power of ten to the next one above everything, so that both ends have a line. */
function tenfolds(least: number, most: number): [number, number] {
  const first = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [first, Math.max(first * 10, 10 ** Math.ceil(Math.log10(most)))];
}

/** The lines of a logarithmic scale: all that lie between are not worth one. */
function powersOfTen(least: number, most: number): number[] {
  const powers = [];
  for (let power = 10 ** Math.floor(Math.log10(least)); power <= most; power *= 10) powers.push(power);
  return powers;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

function timeLabels(_: uPlot, values: readonly number[]): string[] {
  return values.map((seconds) => CLOCK.format(seconds * 1_000));
}
