import { useEffect, useRef, useState } from 'preact/hooks';
import { tenant } from '../api/client.js';
import { readAgain } from '../api/resource.js';
import { may, session } from '../api/session.js';
import { startLive } from '../live/live.js';
import { ConfirmDialog } from '../parts/confirm.js';
import { Icon } from '../parts/icon.js';
import { Toasts } from '../parts/toasts.js';
import { path } from '../routing/location.js';
import { Commands, openPalette } from './commands.js';
import { ConnectionDot } from './connection-dot.js';
import { Navigation } from './navigation.js';
import { ScreenView } from './screen-view.js';
import { TenantChoice } from './tenant-choice.js';
import { UserMenu } from './user-menu.js';

interface ShellProps {
  /** Whether the sign-in lies over it, because the session has ended. */
  readonly isCovered: boolean;
}

/** What stays while screens come and go: navigation, search, connection, who is signed in. */
export function Shell({ isCovered }: ShellProps) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const shown = path.value;
  useEffect(() => setMenuOpen(false), [shown]);
  useLive(isCovered);
  const wasCovered = useRef(isCovered);
  useEffect(() => {
    if (wasCovered.current && !isCovered) readAgain();
    wasCovered.current = isCovered;
  }, [isCovered]);
  return (
    <div class="shell" inert={isCovered}>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place of this page, which the base address would lead away from */}
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <button
          type="button"
          class="button button-icon top-menu"
          aria-label="Navigation"
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name={isMenuOpen ? 'close' : 'menu'} />
        </button>
        <a class="top-name" href="./">
          <img src="./favicon.svg" alt="" width="22" height="22" />
          <span>Punctual</span>
        </a>
        <button type="button" class="top-search" onClick={openPalette}>
          <Icon name="search" />
          <span>Search or go to …</span>
          <kbd>Ctrl K</kbd>
        </button>
        <span class="top-space" />
        <TenantChoice />
        <ConnectionDot />
        <UserMenu />
      </header>
      <nav id="navigation" class={isMenuOpen ? 'side side-open' : 'side'} aria-label="Screens">
        <Navigation />
      </nav>
      <main id="content" class="content" tabIndex={-1}>
        <ScreenView key={tenant.value ?? ''} />
      </main>
      <Toasts />
      <ConfirmDialog />
      <Commands />
    </div>
  );
}

/** A fragment would be part of the address, and lead away from the path. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function useLive(isCovered: boolean): void {
  const who = session.value;
  const keyId = who?.keyId ?? null;
  const ofTenant = tenant.value ?? who?.tenant ?? null;
  useEffect(
    // Who may not read may not listen either, and need not ask again and again.
    () => (isCovered || !may('read') ? undefined : startLive({ keyId, tenant: ofTenant })),
    [isCovered, keyId, ofTenant],
  );
}
