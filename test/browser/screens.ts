/** A screen of the dashboard. */
interface Screen {
  readonly path: string;
  readonly title: string;
}

/** Imported by its address, because the compiler of the tests knows nothing of pages. */
const MODULE = new URL('../../dashboard/src/routing/routes.ts', import.meta.url).pathname;

/** All screens; each parameter in a path begins with a colon. */
export const SCREENS: readonly Screen[] = ((await import(MODULE)) as { ROUTES: readonly Screen[] }).ROUTES;
