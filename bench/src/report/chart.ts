/** Charts as SVG files that can be read on a light and on a dark page. */

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** What stands behind the bar. */
  readonly text: string;
  readonly ours: boolean;
}

export interface Line {
  readonly label: string;
  readonly values: readonly number[];
  readonly ours: boolean;
  /** Broken lines are ours under other conditions. */
  readonly broken?: boolean;
}

const STYLE = `<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .faint { fill: #59636e; }
  .ours { fill: #0969da; } .peer { fill: #afb8c1; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .line.ours { stroke: #0969da; } .line.peer { stroke: #8c959f; } .broken { stroke-dasharray: 5 4; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .faint { fill: #9198a1; }
    .ours { fill: #4493f8; } .peer { fill: #656c76; }
    .line.ours { stroke: #4493f8; } .line.peer { stroke: #9198a1; }
    .grid { stroke: #3d444d; }
  }
</style>`;

const WIDTH = 720;
const LABELS = 150;
const FIGURES = 110;
const BAR_HEIGHT = 22;
const BAR_STEP = 32;
const TOP = 44;

/** One horizontal bar per system, all from zero. */
export function barChart(title: string, bars: readonly Bar[]): string {
  const largest = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const room = WIDTH - LABELS - FIGURES;
  const rows = bars.map(({ label, value, text, ours }, i) => {
    const y = TOP + i * BAR_STEP;
    const length = Math.max(1, (value / largest) * room);
    const middle = y + BAR_HEIGHT / 2 + 4;
    return [
      `<text x="${LABELS - 10}" y="${middle}" text-anchor="end">${escapeText(label)}</text>`,
      `<rect class="${ours ? 'ours' : 'peer'}" x="${LABELS}" y="${y}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}" rx="3"/>`,
      `<text x="${(LABELS + length + 8).toFixed(1)}" y="${middle}">${escapeText(text)}</text>`,
    ].join('\n');
  });
  return svg(title, TOP + bars.length * BAR_STEP + 6, rows);
}

const HEIGHT = 320;
const LEFT = 64;
const RIGHT = 150;
const BOTTOM = 40;
const GRID_LINES = 4;

/** Values second by second, one line per slice of each system. */
export function lineChart(title: string, lines: readonly Line[]): string {
  const longest = Math.max(2, ...lines.map(({ values }) => values.length));
  const top = niceCeiling(Math.max(1, ...lines.flatMap(({ values }) => values)));
  const width = WIDTH - LEFT - RIGHT;
  const height = HEIGHT - TOP - BOTTOM;
  const x = (second: number) => LEFT + (second / (longest - 1)) * width;
  const y = (value: number) => TOP + height - (value / top) * height;
  const grid = Array.from({ length: GRID_LINES + 1 }, (_, i) => {
    const value = (top / GRID_LINES) * i;
    return [
      `<line class="grid" x1="${LEFT}" x2="${LEFT + width}" y1="${y(value)}" y2="${y(value)}"/>`,
      `<text class="faint" x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${value.toLocaleString('en')}</text>`,
    ].join('\n');
  });
  const paths = lines.map(({ values, ours, broken }) => {
    const points = values.map((value, second) => `${x(second).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
    const kind = `line ${ours ? 'ours' : 'peer'}${broken ? ' broken' : ''}`;
    return `<polyline class="${kind}" points="${points}"/>`;
  });
  const axis = [
    `<text class="faint" x="${LEFT}" y="${HEIGHT - 14}">1 s</text>`,
    `<text class="faint" x="${LEFT + width}" y="${HEIGHT - 14}" text-anchor="end">${longest} s</text>`,
  ];
  return svg(title, HEIGHT, [...grid, ...paths, ...axis, ...endLabels(lines, y, LEFT + width + 8)]);
}

/** Names at the right end of the lines, once per system, kept apart where they would touch. */
function endLabels(lines: readonly Line[], y: (value: number) => number, x: number): readonly string[] {
  const ends = new Map<string, number>();
  for (const { label, values } of lines) ends.set(label, y(values.at(-1) ?? 0));
  let above = Number.NEGATIVE_INFINITY;
  return [...ends]
    .sort(([, a], [, b]) => a - b)
    .map(([label, end]) => {
      above = Math.max(end + 4, above + 16);
      return `<text x="${x}" y="${above.toFixed(1)}">${escapeText(label)}</text>`;
    });
}

/** The next larger number that divides well into grid lines. */
export function niceCeiling(value: number): number {
  const step = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((times) => times * step).find((candidate) => candidate >= value)!;
}

function svg(title: string, height: number, content: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeText(title)}">`,
    STYLE,
    `<text class="title" x="16" y="24">${escapeText(title)}</text>`,
    ...content,
    '</svg>',
    '',
  ].join('\n');
}

function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
