import { useEffect } from 'preact/hooks';
import { findSession, lastSession, session, sessionState, signIn, takeCode } from '../api/session.js';
import { confirm } from '../parts/confirm.js';
import { Shell } from './shell.js';
import { beginning, SignIn } from './sign-in.js';

/** Taken while the page loads, before anything can look at the address. */
const code = takeCode();

async function begin(): Promise<void> {
  beginning.value = { isBusy: true, problem: null };
  try {
    await findSession();
    if (code !== null && (await isWanted())) await signIn({ code });
    beginning.value = { isBusy: false, problem: null };
  } catch (error) {
    beginning.value = { isBusy: false, problem: (error as Error).message };
  }
}

/** Anybody can send a link. Who is signed in must not do things with another key, and for another tenant, without knowing. */
async function isWanted(): Promise<boolean> {
  const who = session.value;
  if (who === null) return true;
  return confirm({
    title: 'Sign in by the link?',
    text: `You are signed in with the key ${who.name}. The link signs in all tabs with the key of whoever made it.`,
    verb: 'Sign in by the link',
  });
}

/** The whole page: the screens of whoever is signed in, or the way in. */
export function App() {
  useEffect(() => {
    void begin();
  }, []);
  const who = lastSession.value;
  const owner = who ? `${who.keyId} ${who.tenant}` : null;
  const isIn = sessionState.value.kind === 'signed-in';
  return (
    <>
      {owner !== null && <Shell key={owner} isCovered={!isIn} />}
      {!isIn && <SignIn isOver={owner !== null} />}
    </>
  );
}
