import { useEffect } from 'preact/hooks';
import { findSession, lastSession, sessionState, signIn, takeCode } from '../api/session.js';
import { Shell } from './shell.js';
import { beginning, SignIn } from './sign-in.js';

/** Taken while the page loads, before anything can look at the address. */
const code = takeCode();

async function begin(): Promise<void> {
  beginning.value = { isBusy: true, problem: null };
  try {
    if (code === null) await findSession();
    else await signIn({ code });
    beginning.value = { isBusy: false, problem: null };
  } catch (error) {
    beginning.value = { isBusy: false, problem: (error as Error).message };
    // A used link may be opened again by somebody who is signed in.
    if (code !== null) await findSession().catch(() => undefined);
  }
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
