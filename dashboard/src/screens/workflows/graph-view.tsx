import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Workflow } from '../../../../src/core/workflow.js';
import { plural } from '../../parts/duration-text.js';
import { toneOf } from '../../parts/state-badge.js';
import { goTo } from '../../routing/location.js';
import { addressOf } from '../../routing/root.js';
import { type GraphEdge, type GraphNode, layOut, NODE_HEIGHT, NODE_WIDTH } from './graph-layout.js';
import './workflows.css';

interface GraphViewProps {
  readonly jobs: Workflow['jobs'];
  /** Steps that decide when the workflow ends. */
  readonly critical: ReadonlySet<string>;
}

const MARGIN = 16;
const MOST_ZOOM = 2;
const LEAST_ZOOM = 0.1;
const NAME_LETTERS = 19;

/** The graph of a workflow with the states of its steps: moved by dragging or scrolling, nearer and farther with the buttons. */
export function GraphView({ jobs, critical }: GraphViewProps) {
  const names = Object.keys(jobs).join('\n');
  const failed = Object.entries(jobs)
    .filter(([, { state }]) => state === 'failed')
    .map(([name]) => name);
  const layout = useMemo(() => {
    const apart = new Set([...failed, ...critical]);
    const steps = Object.entries(jobs).map(([name, { after }]) => ({ name, after }));
    return layOut(steps, (name) => apart.has(name));
  }, [names, failed.join('\n')]);
  const box = useRef<HTMLDivElement>(null);
  const drawing = useRef<SVGSVGElement>(null);
  const [zoom, setZoom] = useState(1);
  const size = { width: layout.width + 2 * MARGIN, height: layout.height + 2 * MARGIN };
  const fit = () => {
    // The box is as high as what is drawn, up to the part of the window that its style gives it.
    const most = Number.parseFloat(getComputedStyle(box.current!).maxHeight);
    setZoom(Math.max(LEAST_ZOOM, Math.min(1, box.current!.clientWidth / size.width, most / size.height)));
  };
  useEffect(fit, [layout]);
  useEffect(() => {
    drawing.current!.style.width = `${size.width * zoom}px`;
    drawing.current!.style.height = `${size.height * zoom}px`;
  }, [zoom, size.width, size.height]);
  useDragging(box);
  const change = (factor: number) => () => setZoom(Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, zoom * factor)));
  return (
    <div class="graph">
      <fieldset class="button-group graph-zoom">
        <legend class="visually-hidden">Zoom</legend>
        <button type="button" class="button button-small" onClick={change(1 / 1.4)} aria-label="Farther">
          −
        </button>
        <button type="button" class="button button-small" onClick={fit}>
          Fit
        </button>
        <button type="button" class="button button-small" onClick={change(1.4)} aria-label="Nearer">
          +
        </button>
      </fieldset>
      <section
        ref={box}
        class="graph-box"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with keys
        tabIndex={0}
        aria-label={`Graph of ${plural(Object.keys(jobs).length, 'step')}`}
      >
        <svg ref={drawing} viewBox={`${-MARGIN} ${-MARGIN} ${size.width} ${size.height}`}>
          <title>Steps, each behind those that it waits for</title>
          {layout.edges.map((edge) => (
            <Edge key={`${edge.from.key}>${edge.to.key}`} edge={edge} critical={critical} />
          ))}
          {layout.nodes.map((node) => (
            <Node key={node.key} node={node} jobs={jobs} isCritical={critical.has(node.key)} />
          ))}
        </svg>
      </section>
    </div>
  );
}

/** Has the pointer move what is seen. */
function useDragging(box: { readonly current: HTMLDivElement | null }): void {
  useEffect(() => {
    const element = box.current!;
    const over = new AbortController();
    const { signal } = over;
    let from: { x: number; y: number; left: number; top: number } | null = null;
    element.addEventListener(
      'pointerdown',
      ({ clientX, clientY, pointerType }) => {
        if (pointerType === 'mouse')
          from = { x: clientX, y: clientY, left: element.scrollLeft, top: element.scrollTop };
      },
      { signal },
    );
    addEventListener(
      'pointermove',
      ({ clientX, clientY }) => {
        if (!from) return;
        element.scrollLeft = from.left - (clientX - from.x);
        element.scrollTop = from.top - (clientY - from.y);
      },
      { signal },
    );
    addEventListener('pointerup', () => (from = null), { signal });
    return () => over.abort();
  }, []);
}

function Edge({
  edge: { from, to },
  critical,
}: {
  readonly edge: GraphEdge;
  readonly critical: ReadonlySet<string>;
}) {
  const [x1, y1] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2];
  const [x2, y2] = [to.x, to.y + NODE_HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  const isCritical = critical.has(from.key) && critical.has(to.key);
  return (
    <path
      class={isCritical ? 'graph-edge graph-edge-critical' : 'graph-edge'}
      d={`M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`}
    />
  );
}

interface NodeProps {
  readonly node: GraphNode;
  readonly jobs: Workflow['jobs'];
  readonly isCritical: boolean;
}

function Node({ node: { key, names, x, y }, jobs, isCritical }: NodeProps) {
  const { state, id } = jobs[key]!;
  const isMany = names.length > 1;
  const shown = isMany ? countsOf(names, jobs) : state;
  const text = isMany ? `${names.length} × ${key}` : key;
  const open = (event: Event) => {
    event.preventDefault();
    goTo(`/jobs/${id}`);
  };
  const box = (
    <>
      <title>{`${text}: ${shown}`}</title>
      <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="6" />
      <circle cx="14" cy={NODE_HEIGHT / 2} r="4.5" />
      <text x="26" y={isMany ? 14 : 21}>
        {text.length > NAME_LETTERS ? `${text.slice(0, NAME_LETTERS - 1)}…` : text}
      </text>
      {isMany && (
        <text x="26" y="27" class="graph-counts">
          {shown}
        </text>
      )}
    </>
  );
  const look = `graph-node graph-${toneOf(isMany ? worstOf(names, jobs) : state)}${isCritical ? ' graph-critical' : ''}`;
  return (
    <g class={look} transform={`translate(${x} ${y})`}>
      {isMany ? (
        box
      ) : (
        <a href={addressOf(`/jobs/${id}`)} onClick={open}>
          {box}
        </a>
      )}
    </g>
  );
}

function countsOf(names: readonly string[], jobs: Workflow['jobs']): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(jobs[name]!.state, (counts.get(jobs[name]!.state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
}

const ORDER = ['failed', 'running', 'pending', 'blocked', 'cancelled', 'skipped', 'succeeded'];

/** The state that says most about many steps. */
function worstOf(names: readonly string[], jobs: Workflow['jobs']): string {
  const states = new Set<string>(names.map((name) => jobs[name]!.state));
  return ORDER.find((state) => states.has(state)) ?? 'blocked';
}
