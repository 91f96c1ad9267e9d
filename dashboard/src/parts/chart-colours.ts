/**
 * The colours of the style sheet for what is drawn on a canvas. A custom property itself reads as the text that defines it, so
 * an element is given the colour, and asked for what it then has.
 */

/** The colours of one theme. */
export interface ChartColours {
  readonly axis: string;
  readonly grid: string;
  /** The colour of a name in `tokens.css`, as `#rrggbb`. */
  of(name: string): string;
}

const known = new Map<string, ChartColours>();

/** The colours of a theme, which must be the one that is shown. */
export function chartColours(theme: string): ChartColours {
  const found = known.get(theme);
  if (found) return found;
  const cache = new Map<string, string>();
  const of = (name: string) => {
    const colour = cache.get(name) ?? readColour(name);
    cache.set(name, colour);
    return colour;
  };
  const colours = { of, axis: of('--chart-axis'), grid: of('--chart-grid') };
  known.set(theme, colours);
  return colours;
}

function readColour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const [red = 0, green = 0, blue = 0] =
    getComputedStyle(probe)
      .color.match(/[\d.]+/g)
      ?.map(Number) ?? [];
  probe.remove();
  return `#${[red, green, blue].map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
}
