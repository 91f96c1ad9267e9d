import { computed, signal } from '@preact/signals';
import { addressOf, pathBelowRoot } from './root.js';

/**
 * Where the user is. Links are plain anchors, so that everything that browsers do with links works; clicks that would load the
 * page again are turned into a change of this signal.
 */

interface Place {
  readonly path: string;
  readonly search: string;
}

const read = (): Place => ({ path: pathBelowRoot(location.pathname), search: location.search });

const place = signal<Place>(read());

/** The path below the root, such as `/jobs`. */
export const path = computed(() => place.value.path);

/** What stands behind the question mark. */
export const query = computed(() => new URLSearchParams(place.value.search));

/** The place as a link to come back to. */
export const here = computed(() => place.value.path + place.value.search);

/** Goes to a path below the root; with `replace`, the way back does not lead here. */
export function goTo(target: string, { replace = false } = {}): void {
  const url = new URL(addressOf(target), location.origin);
  if (url.href === location.href) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  const isOtherPage = pathBelowRoot(url.pathname) !== place.value.path;
  place.value = read();
  if (isOtherPage && !replace) scrollTo(0, 0);
}

/** Changes parameters of the query; null takes one away. */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
  options: { replace?: boolean } = { replace: true },
): void {
  const next = new URLSearchParams(place.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  goTo(`${place.value.path}${text === '' ? '' : `?${text}`}`, options);
}

/** Has clicks on links of the page change the place, and follows the buttons of the browser. */
export function followLinks(): void {
  addEventListener('popstate', () => {
    place.value = read();
  });
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || !isOwnClick(event, link)) return;
    event.preventDefault();
    goTo(pathBelowRoot(link.pathname) + link.search);
  });
}

function isOwnClick(event: MouseEvent, link: HTMLAnchorElement): boolean {
  const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!isPlain || event.defaultPrevented) return false;
  if (link.target !== '' || link.hasAttribute('download') || !link.hasAttribute('href')) return false;
  // A link within the page is the browser's affair.
  if (link.hash !== '' && link.pathname === location.pathname) return false;
  return link.origin === location.origin && link.pathname.startsWith(addressOf('/'));
}
