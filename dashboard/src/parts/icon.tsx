/** Icons of the dashboard, drawn with one stroke in the colour of the text. */
const PATHS = {
  home: 'M3 9.5 10 4l7 5.5V16a1 1 0 0 1-1 1h-3.5v-4.5h-5V17H4a1 1 0 0 1-1-1z',
  jobs: 'M4 5h12M4 10h12M4 15h8',
  errors: 'M10 3.5 17.5 16.5h-15zM10 8.5v3.6M10 14.4v.1',
  workflows: 'M3 4h4v4H3zM13 4h4v4h-4zM8 13h4v4H8zM7 6h6M5 8v3h10V8M10 11v2',
  batches: 'M3 4h14v4H3zM3 12h14v4H3zM6 6h.1M6 14h.1',
  submit: 'M10 4v12M4 10h12',
  schedules: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6v4l2.7 1.8',
  queues: 'M4 4v12M8 6.5v7M12 4v12M16 6.5v7',
  workers: 'M5 3.5h10v5H5zM5 11.5h10v5H5zM8 6h.1M8 14h.1',
  origins: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M3 10h14M10 3c4 4 4 10 0 14M10 3c-4 4-4 10 0 14',
  artifacts: 'M10 3 16.5 6.5v7L10 17l-6.5-3.5v-7zM3.5 6.5 10 10l6.5-3.5M10 10v7',
  cluster: 'M10 3.5v5M10 8.5 5 13M10 8.5 15 13M8.5 3.5h3M3.5 14.5h3M13.5 14.5h3',
  tenants:
    'M7 9a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 7 9M2.5 16.5c0-3 2-5 4.5-5s4.5 2 4.5 5M13 9a2.3 2.3 0 1 0 0-4.6M14 11.7c2 .3 3.5 2 3.5 4.8',
  keys: 'M7 13a3.5 3.5 0 1 1 3.2-2.1L17 17.5M14.5 15l1.8-1.8M12.5 13l1.5-1.5',
  secrets: 'M5 9h10v7.5H5zM7 9V6.5a3 3 0 0 1 6 0V9',
  audit: 'M5 3h7l3 3v11H5zM12 3v3h3M7.5 10h5M7.5 13h5',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M13.2 13.2 17 17',
  close: 'm5 5 10 10M15 5 5 15',
  menu: 'M3 5.5h14M3 10h14M3 14.5h14',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  theme: 'M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14',
  leave: 'M8 4H4v12h4M8 10h9M14 7l3 3-3 3',
  down: 'm5 7.5 5 5 5-5',
  right: 'm7.5 5 5 5-5 5',
  pause: 'M7 5v10M13 5v10',
  play: 'M6 4.5 15.5 10 6 15.5z',
  refresh: 'M16 10a6 6 0 1 1-1.8-4.3M16 3v3.5h-3.5',
  terminal: 'm4 6 4 4-4 4M10 14.5h6',
} as const;

export type IconName = keyof typeof PATHS;

/** An icon that says nothing by itself: what it means stands beside it, or in the label of its button. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
