import { asProblem } from '../api/problem.js';
import { session, signOut } from '../api/session.js';
import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { Moment } from '../parts/moment.js';
import { toast } from '../parts/toasts.js';
import { openShortcuts } from './commands.js';
import { THEMES, theme } from './theme.js';

/** Who is signed in, until when and with which rights; the theme; the way out. */
export function UserMenu() {
  const who = session.value;
  if (!who) return null;
  const rights = who.operator
    ? who.scopes.length === 0
      ? 'operator'
      : 'operator, read only'
    : who.scopes.join(', ');
  return (
    <Menu
      buttonClass="button button-quiet"
      button={
        <>
          <span class="top-user">{who.name}</span>
          <Icon name="down" />
        </>
      }
    >
      <dl class="facts facts-small">
        <dt>Key</dt>
        <dd>{who.name}</dd>
        <dt>Rights</dt>
        <dd>{rights}</dd>
        {who.queues && (
          <>
            <dt>Queues</dt>
            <dd>{who.queues.join(', ')}</dd>
          </>
        )}
        {who.tasks && (
          <>
            <dt>Tasks</dt>
            <dd>{who.tasks.join(', ')}</dd>
          </>
        )}
        <dt>Session ends</dt>
        <dd>{who.expiresAt === null ? 'never' : <Moment at={who.expiresAt} />}</dd>
        <dt>Node</dt>
        <dd>
          {who.node} · {who.version}
        </dd>
      </dl>
      <fieldset class="menu-themes">
        <legend>Theme</legend>
        {THEMES.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="theme"
              checked={theme.value === each}
              onChange={() => {
                theme.value = each;
              }}
            />
            {each}
          </label>
        ))}
      </fieldset>
      <button type="button" class="menu-item" onClick={openShortcuts}>
        Keyboard shortcuts <kbd>?</kbd>
      </button>
      <button type="button" class="menu-item" onClick={() => void leave()}>
        <Icon name="leave" /> Sign out
      </button>
    </Menu>
  );
}

async function leave(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    toast({ kind: 'bad', text: `Not signed out: ${asProblem(error)?.message}` });
  }
}
