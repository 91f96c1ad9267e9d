/**
 * Where the dashboard begins. The node writes a `<base>` that is right behind every proxy; it is made absolute here, so that
 * going from page to page cannot change what it means.
 */

const base = document.querySelector('base');
if (base) base.href = document.baseURI;

/** The address of the dashboard, with a slash at its end. */
export const ROOT = new URL('.', document.baseURI);

/** The address of something below the root, for the browser. */
export function addressOf(path: string): string {
  return ROOT.pathname + path.replace(/^\//, '');
}

/** A path below the root, with a slash at its beginning, from that of the address bar. */
export function pathBelowRoot(pathname: string): string {
  return pathname.startsWith(ROOT.pathname) ? `/${pathname.slice(ROOT.pathname.length)}` : '/';
}
