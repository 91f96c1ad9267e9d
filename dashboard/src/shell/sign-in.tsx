import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { asProblem } from '../api/problem.js';
import { findSession, sessionState, signIn } from '../api/session.js';
import { Copied } from '../parts/copied.js';

/** How the page has begun: whether it still asks the node, and what went wrong. */
export const beginning = signal<{ readonly isBusy: boolean; readonly problem: string | null }>({
  isBusy: true,
  problem: null,
});

interface SignInProps {
  /** Whether it covers a screen whose session has ended. */
  readonly isOver: boolean;
}

/** The way in: a key, or a link that signs in once. */
export function SignIn({ isOver }: SignInProps) {
  const { isBusy, problem } = beginning.value;
  useEffect(() => {
    document.title = 'Sign in · Punctual';
  }, []);
  if (isBusy)
    return (
      <p class="sign-in-wait" role="status">
        Connecting …
      </p>
    );
  const Frame = isOver ? Cover : Whole;
  return (
    <Frame>
      <div class="card sign-in-card">
        <h1>
          <img src="./favicon.svg" alt="" width="28" height="28" /> Punctual
        </h1>
        <Reason />
        {problem !== null && (
          <p class="notice notice-bad" role="alert">
            {problem}
          </p>
        )}
        <KeyForm />
        <p class="soft">No key at hand? On the machine of a node, this prints a link that signs in once:</p>
        <Copied text="punctual open" />
      </div>
    </Frame>
  );
}

interface FrameProps {
  readonly children: ComponentChildren;
}

function Whole({ children }: FrameProps) {
  return <main class="sign-in">{children}</main>;
}

/** A window over the page: only a window can lie over another one that was open when the session ended. */
function Cover({ children }: FrameProps) {
  const cover = useRef<HTMLDialogElement>(null);
  const open = () => cover.current?.showModal();
  useLayoutEffect(() => {
    // Browsers may close this window and the one below it together, because no click has opened this one.
    const keep = (event: KeyboardEvent) => event.key === 'Escape' && event.preventDefault();
    document.addEventListener('keydown', keep, { capture: true });
    // Before the field takes the focus.
    open();
    return () => document.removeEventListener('keydown', keep, { capture: true });
  }, []);
  // What is asked to close in another way, such as by the way back of a phone, is opened again.
  return (
    <dialog
      ref={cover}
      class="sign-in sign-in-over"
      aria-label="Sign in"
      onCancel={(event) => event.preventDefault()}
      onClose={open}
    >
      {children}
    </dialog>
  );
}

function Reason() {
  const state = sessionState.value;
  if (state.kind === 'unknown') {
    return (
      <p>
        The node cannot be reached.{' '}
        <button type="button" class="link" onClick={() => void retry()}>
          Try again
        </button>
      </p>
    );
  }
  if (state.kind !== 'signed-out') return null;
  if (state.reason === 'expired')
    return <p>Your session has ended. Sign in again to go on where you were; nothing you typed is lost.</p>;
  if (state.reason === 'left') return <p>You are signed out.</p>;
  return <p>Sign in with a key to see your jobs.</p>;
}

async function retry(): Promise<void> {
  beginning.value = { isBusy: true, problem: null };
  await findSession().then(
    () => {
      beginning.value = { isBusy: false, problem: null };
    },
    (error: Error) => {
      beginning.value = { isBusy: false, problem: error.message };
    },
  );
}

function KeyForm() {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const key = input.current!.value.trim();
    if (key === '') return;
    setSending(true);
    setProblem(null);
    try {
      await signIn({ key });
    } catch (error) {
      const found = asProblem(error);
      setProblem(
        found?.status === 401 ? 'The key is not valid, or it has been revoked.' : (found?.message ?? null),
      );
      setSending(false);
      input.current?.select();
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label for="sign-in-key">Key</label>
      <input
        ref={input}
        id="sign-in-key"
        type="password"
        autocomplete="current-password"
        spellcheck={false}
        required
        placeholder="pk_…"
        aria-describedby={problem === null ? undefined : 'sign-in-problem'}
        aria-invalid={problem !== null}
      />
      {problem !== null && (
        <p id="sign-in-problem" class="notice notice-bad" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="button button-main" disabled={isSending}>
        {isSending ? 'Signing in …' : 'Sign in'}
      </button>
    </form>
  );
}
