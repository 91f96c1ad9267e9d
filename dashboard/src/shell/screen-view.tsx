import type { FunctionComponent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { may } from '../api/session.js';
import { EmptyState } from '../parts/empty-state.js';
import { path } from '../routing/location.js';
import { type Match, matchRoute, type ScreenProps, type ScreenRoute } from '../routing/routes.js';

const loaded = new Map<ScreenRoute, FunctionComponent<ScreenProps>>();

/** The screen that belongs to the address. */
export function ScreenView() {
  const match = matchRoute(path.value);
  useTitle(match);
  if (!match) return <NothingHere />;
  if (!may(match.route.scope ?? 'read')) return <NotAllowed title={match.route.title} />;
  // What a screen remembers belongs to what it shows.
  return <LoadedScreen key={path.value} match={match} />;
}

function LoadedScreen({ match }: { readonly match: Match }) {
  const { route, params } = match;
  const [, setLoads] = useState(0);
  const [failed, setFailed] = useState(false);
  const isHere = useRef(true);
  useEffect(() => {
    isHere.current = true;
    if (loaded.has(route)) return;
    route.load().then(
      (module) => {
        loaded.set(route, module.default as FunctionComponent<ScreenProps>);
        if (isHere.current) setLoads((count) => count + 1);
      },
      () => isHere.current && setFailed(true),
    );
    return () => {
      isHere.current = false;
    };
  }, [route]);
  const Screen = loaded.get(route);
  if (Screen) return <Screen params={params} />;
  if (failed) return <LoadFailed />;
  return (
    <p class="screen-wait" role="status">
      Loading {route.title} …
    </p>
  );
}

function useTitle(match: Match | null): void {
  const first = Object.values(match?.params ?? {})[0];
  const name = match ? match.route.title : 'Not found';
  useEffect(() => {
    document.title = `${first === undefined ? name : `${name} ${first}`} · Punctual`;
  }, [name, first]);
}

function NothingHere() {
  return (
    <EmptyState title="There is nothing at this address">
      <p>
        The link may be mistyped, or of another version. <a href="./">Home</a> shows how things are.
      </p>
    </EmptyState>
  );
}

function NotAllowed({ title }: { readonly title: string }) {
  return (
    <EmptyState title={`Your key may not see ${title}`} command="punctual key list">
      <p>A key with more scopes shows it. Whoever made yours can make one:</p>
    </EmptyState>
  );
}

/** After an upgrade of the node, parts of the page that were not loaded yet are no longer there. */
function LoadFailed() {
  return (
    <EmptyState title="This part of the page could not be loaded">
      <p>The node may have been upgraded, or the connection was lost.</p>
      <button type="button" class="button button-main" onClick={() => location.reload()}>
        Load the page again
      </button>
    </EmptyState>
  );
}
