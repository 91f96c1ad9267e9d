import { may } from '../api/session.js';
import { Icon, type IconName } from '../parts/icon.js';
import { path } from '../routing/location.js';
import { addressOf } from '../routing/root.js';
import { ROUTES, type ScreenRoute } from '../routing/routes.js';

/** The screens that the session may see, in groups. */
export function Navigation() {
  const shown = ROUTES.filter((route) => route.group !== undefined && may(route.scope ?? 'read'));
  const groups = [...new Set(shown.map((route) => route.group!))];
  return (
    <>
      {groups.map((group) => (
        <section key={group} class="side-group">
          <h2>{group}</h2>
          <ul>
            {shown
              .filter((route) => route.group === group)
              .map((route) => (
                <li key={route.path}>
                  <Entry route={route} />
                </li>
              ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function Entry({ route }: { readonly route: ScreenRoute }) {
  const isHere = path.value === route.path;
  const isAbove = route.path !== '/' && path.value.startsWith(`${route.path}/`);
  return (
    <a href={addressOf(route.path)} aria-current={isHere ? 'page' : isAbove ? 'true' : undefined}>
      <Icon name={iconOf(route)} />
      {route.title}
    </a>
  );
}

function iconOf({ path: of }: ScreenRoute): IconName {
  return of === '/' ? 'home' : (of.slice(1) as IconName);
}
