import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { PageList } from '../api/page-list.js';
import { goTo } from '../routing/location.js';
import { addressOf } from '../routing/root.js';
import { useShortcut } from '../shell/shortcuts.js';
import { countText } from './duration-text.js';
import { ProblemNote } from './problem-note.js';

/**
 * A list of rows. Only the rows that can be seen are elements, and only some pages are kept: browsers end what is taller than
 * 33 million pixels, so a list of millions is a window that moves over them.
 */

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  /** What stands in the head besides the title, which then only those hear who do not see it. */
  readonly head?: ComponentChildren;
  readonly render: (row: T) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** What is drawn takes the cell from edge to edge. */
  readonly isWhole?: boolean;
  /** As in CSS; the others share what is left. */
  readonly width?: string;
  /** Left out where the table is narrower than a phone held across, or than a tablet. */
  readonly hiddenBelow?: 'narrow' | 'medium';
}

/** Rows that somebody has chosen, by their keys. */
export interface Selection {
  has(key: string): boolean;
  toggle(key: string): void;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** The path of what a row leads to. */
  readonly pathOf?: (row: T) => string;
  /** Where more rows come from. */
  readonly list?: PageList<T>;
  readonly selection?: Selection;
  /** What stands there instead of no rows. */
  readonly empty: ComponentChildren;
  /** Whether `j` and `k` go through its rows: the main table of a screen. */
  readonly hasKeys?: boolean;
  /** Told which rows are there as elements. */
  readonly onSeen?: (rows: readonly T[]) => void;
}

const ROW_PX = 34;
const HEAD_PX = 30;
/** Rows that are there before they can be seen. */
const SPARE_ROWS = 12;
/** More rows are read when so few are left below. */
const READ_AHEAD_ROWS = 30;

export function Table<T>(props: TableProps<T>) {
  const { label, columns, rows, list, selection, empty } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [seen, setWindow] = useState({ from: 0, to: 60 });
  const look = () => {
    if (!scroller.current) return;
    const { scrollTop, clientHeight } = scroller.current;
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - SPARE_ROWS);
    const to = Math.ceil((scrollTop + clientHeight) / ROW_PX) + SPARE_ROWS;
    setWindow((now) => (now.from === from && now.to === to ? now : { from, to }));
    props.onSeen?.(rows.slice(from, to));
    // What went wrong is tried again when somebody says so.
    if (!list || list.problem.peek()) return;
    if (to + READ_AHEAD_ROWS >= rows.length && list.hasMore.peek()) void list.readMore();
    else if (from === 0 && scrollTop < READ_AHEAD_ROWS * ROW_PX && list.before.peek() > 0)
      void list.readBack();
  };
  // Pages may come without rows, so the end of reading tells as much as new rows do.
  useLayoutEffect(look, [rows, list?.isLoading.value]);
  useStillRows(scroller, list?.before.value ?? 0);
  const current = useRowKeys(props, scroller);
  const before = list?.before.value ?? 0;
  const from = Math.min(seen.from, Math.max(0, rows.length - 1));
  const shown = rows.slice(from, seen.to);
  if (rows.length === 0 && (!list || (list.isRead.value && !list.hasMore.value))) return <>{empty}</>;
  return (
    <div class="table-frame">
      <div ref={scroller} class="table-scroller" onScroll={look} tabIndex={-1}>
        <table aria-label={label} aria-rowcount={list?.hasMore.value ? -1 : rows.length + before + 1}>
          <colgroup>
            {selection && <col class="column-choice" />}
            {columns.map((column) => (
              <ColumnWidth key={column.title} width={column.width} look={cellClass(column)} />
            ))}
          </colgroup>
          <thead>
            <tr>
              {selection && (
                <th scope="col">
                  <span class="visually-hidden">Chosen</span>
                </th>
              )}
              {columns.map((column) => (
                <th key={column.title} scope="col" class={cellClass(column)}>
                  {column.head === undefined ? (
                    column.title
                  ) : (
                    <>
                      <span class="visually-hidden">{column.title}</span>
                      {column.head}
                    </>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Space rows={from} />
            {shown.map((row, i) => (
              <Row
                key={props.keyOf(row)}
                table={props}
                row={row}
                at={from + i}
                before={before}
                current={current}
              />
            ))}
            <Space rows={rows.length - from - shown.length} />
          </tbody>
        </table>
        {list?.isLoading.value && (
          <p class="table-wait" role="status">
            Reading …
          </p>
        )}
      </div>
      {list && <ProblemNote problem={list.problem.value} onRetry={() => void list.readMore()} />}
    </div>
  );
}

interface ColumnWidthProps {
  readonly width: string | undefined;
  /** A column that is left out has no width either. */
  readonly look: string;
}

function ColumnWidth({ width, look }: ColumnWidthProps) {
  const column = useRef<HTMLTableColElement>(null);
  useLayoutEffect(() => {
    column.current!.style.width = width ?? '';
  }, [width]);
  return <col ref={column} class={look} />;
}

/** The room of rows that are not there. */
function Space({ rows }: { readonly rows: number }) {
  const cell = useRef<HTMLTableRowElement>(null);
  useLayoutEffect(() => {
    if (cell.current) cell.current.style.height = `${rows * ROW_PX}px`;
  }, [rows]);
  if (rows <= 0) return null;
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row without cells takes no focus
  return <tr ref={cell} aria-hidden="true" />;
}

interface RowProps<T> {
  readonly table: TableProps<T>;
  readonly row: T;
  readonly at: number;
  readonly before: number;
  readonly current: number;
}

function Row<T>({ table, row, at, before, current }: RowProps<T>) {
  const { columns, keyOf, pathOf, selection } = table;
  const path = pathOf?.(row);
  const isChosen = selection?.has(keyOf(row)) ?? false;
  const classes = [
    path !== undefined && 'row-link',
    at === current && 'row-current',
    isChosen && 'row-chosen',
  ];
  const open = (event: MouseEvent) => {
    const isElsewhere = event.target instanceof Element && event.target.closest('a, button, input, label');
    if (path !== undefined && !isElsewhere && getSelection()?.isCollapsed !== false) goTo(path);
  };
  return (
    // Its first cell is a link, also for keys; the whole row is a larger target for it.
    <tr class={classes.filter(Boolean).join(' ')} aria-rowindex={before + at + 2} onClick={open}>
      {selection && (
        <td class="cell-choice">
          <input
            type="checkbox"
            aria-label={`Choose ${countText(before + at + 1)}`}
            checked={isChosen}
            onChange={() => selection.toggle(keyOf(row))}
          />
        </td>
      )}
      {columns.map((column, i) => (
        <td key={column.title} class={cellClass(column)}>
          {i === 0 && path !== undefined ? (
            <a href={addressOf(path)}>{column.render(row)}</a>
          ) : (
            column.render(row)
          )}
        </td>
      ))}
    </tr>
  );
}

function cellClass({
  isNumber,
  isWhole,
  hiddenBelow,
}: Pick<Column<unknown>, 'isNumber' | 'isWhole' | 'hiddenBelow'>): string {
  const classes = [
    isNumber && 'cell-number',
    isWhole && 'cell-whole',
    hiddenBelow && `hidden-${hiddenBelow}`,
  ];
  return classes.filter(Boolean).join(' ');
}

/** When pages before the first row come or go, what is seen must not move. */
function useStillRows(scroller: { readonly current: HTMLDivElement | null }, before: number): void {
  const known = useRef(before);
  useLayoutEffect(() => {
    if (scroller.current) scroller.current.scrollTop -= (before - known.current) * ROW_PX;
    known.current = before;
  }, [before]);
}

/** Has `j` and `k` go through the rows, Enter open one and `x` choose it; answers with the current one, or -1. */
function useRowKeys<T>(table: TableProps<T>, scroller: { readonly current: HTMLDivElement | null }): number {
  const { rows, keyOf, pathOf, selection, hasKeys = false } = table;
  const [key, setKey] = useState<string | null>(null);
  const at = key === null ? -1 : rows.findIndex((row) => keyOf(row) === key);
  const move = (by: number) => {
    const next = Math.min(rows.length - 1, Math.max(0, at + by));
    const row = rows[next];
    if (!row) return;
    setKey(keyOf(row));
    const box = scroller.current!;
    const top = next * ROW_PX;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW_PX + HEAD_PX > box.scrollTop + box.clientHeight)
      box.scrollTop = top + ROW_PX + HEAD_PX - box.clientHeight;
  };
  const open = () => {
    const row = rows[at];
    if (row && pathOf) goTo(pathOf(row));
  };
  const choose = () => {
    const row = rows[at];
    if (row && selection) selection.toggle(keyOf(row));
  };
  useShortcut(hasKeys ? 'j' : '', 'Next row', () => move(1));
  useShortcut(hasKeys ? 'k' : '', 'Row before', () => move(-1));
  useShortcut(hasKeys && pathOf ? 'o' : '', 'Open the row', open);
  useShortcut(hasKeys && selection ? 'x' : '', 'Choose the row', choose);
  useEffect(() => {
    if (!hasKeys || at < 0) return;
    const press = (event: KeyboardEvent) => {
      if (event.key === 'Enter' && event.target === document.body) open();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  });
  return at;
}
