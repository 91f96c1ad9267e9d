import type { ComponentChildren, FunctionComponent } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';
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
  // What was drawn decides, and not what is there by now: another view may have loaded the screen between the two.
  const [Screen, setScreen] = useState(() => loaded.get(route));
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (Screen) return;
    let isHere = true;
    route.load().then(
      (module) => {
        const screen = module.default as FunctionComponent<ScreenProps>;
        loaded.set(route, screen);
        if (isHere) setScreen(() => screen);
      },
      () => isHere && setFailed(true),
    );
    return () => {
      isHere = false;
    };
  }, [route]);
  if (Screen)
    return (
      <Guarded>
        <Screen params={params} />
      </Guarded>
    );
  if (failed) return <LoadFailed />;
  return (
    <p class="screen-wait" role="status">
      Loading {route.title} …
    </p>
  );
}

/** A screen that fails must not take the navigation and everything else with it. */
function Guarded({ children }: { readonly children: ComponentChildren }) {
  const [error, tryAgain] = useErrorBoundary((thrown: unknown) => reportError(thrown));
  if (error === undefined) return children;
  return (
    <EmptyState title="This screen has failed">
      <p>It cannot show what it was given: {error instanceof Error ? error.message : String(error)}</p>
      <button type="button" class="button button-main" onClick={tryAgain}>
        Try again
      </button>
    </EmptyState>
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
