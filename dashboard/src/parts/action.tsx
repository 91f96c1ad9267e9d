import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { KeyScope } from '../../../src/core/access.js';
import { call, DEFAULT_TENANT, type Method, requestUrl, tenant } from '../api/client.js';
import { asProblem } from '../api/problem.js';
import { may } from '../api/session.js';
import { confirm, type Question } from './confirm.js';
import { copyText } from './copied.js';
import { Icon } from './icon.js';
import { Menu } from './menu.js';
import { quoted } from './quoted.js';
import { toast } from './toasts.js';

/** Something that somebody can have done, and how to do it without the page. */
export interface Action {
  /** What the button says. */
  readonly label: string;
  readonly method: Method;
  readonly path: string;
  readonly body?: unknown;
  /** The same on the command line, without the tenant. */
  readonly cli: string;
  /**
   * Whether an operator does it without naming a tenant, because it is about all of them or about none. False where it may be
   * either, so that the command must say which one.
   */
  readonly allTenants?: boolean;
  /** What a key must be able to do; without that, there is no button. */
  readonly scope: KeyScope | 'operator';
  /** Asked first. */
  readonly question?: Question;
  /** What is said when it is done. */
  readonly done: string;
  /** What takes it back. */
  readonly undo?: Omit<Action, 'undo' | 'question'>;
  readonly isDangerous?: boolean;
  /** Called with the answer when it is done, or taken back. */
  readonly onDone?: (answer: unknown) => void;
}

/** Does it, and says how it went; false if it was not done. */
export async function perform(action: Action): Promise<boolean> {
  if (action.question && !(await confirm(action.question))) return false;
  try {
    const { method, path, body, allTenants = false } = action;
    const answer = await call<unknown>(method, path, { allTenants, ...(body !== undefined && { body }) });
    const { undo } = action;
    toast({
      kind: 'good',
      text: action.done,
      ...(undo && { undo: async () => void (await perform(undo)) }),
    });
    action.onDone?.(answer);
    return true;
  } catch (error) {
    const problem = asProblem(error);
    if (problem) toast({ kind: 'bad', text: `${action.label}: ${problem.message}` });
    return false;
  }
}

type Shown = Pick<Action, 'method' | 'path' | 'body' | 'allTenants'> & {
  /** Null where no command says it. */
  readonly cli: string | null;
};

/** The command that does the same with curl. */
export function curlText({ method, path, body, allTenants = false }: Omit<Shown, 'cli'>): string {
  const parts = ['curl', '-sS'];
  if (method !== 'GET') parts.push('-X', method);
  parts.push(quoted(requestUrl(path).href), '-H', '"authorization: Bearer $PUNCTUAL_API_KEY"');
  if (tenant.value !== null && !allTenants) parts.push('-H', quoted(`punctual-tenant: ${tenant.value}`));
  if (body !== undefined) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    parts.push('-H', quoted('content-type: application/json'), '-d', quoted(text));
  }
  return parts.join(' ');
}

/** The command of the program that does the same. */
export function cliText({ cli, allTenants }: Pick<Action, 'cli' | 'allTenants'>): string {
  if (tenant.value === null || allTenants) return cli;
  const isMeant = tenant.value === DEFAULT_TENANT && allTenants === undefined;
  return isMeant ? cli : `${cli} --tenant ${quoted(tenant.value)}`;
}

/** The two ways to do or read something without the page, for the clipboard. */
export function CopyAs({ cli, ...shown }: Shown) {
  return (
    <Menu button={<Icon name="terminal" />} label="Copy as a command" buttonClass="button button-icon">
      <CopyItem text={curlText(shown)} what="curl" />
      {cli !== null && <CopyItem text={cliText({ ...shown, cli })} what="CLI" />}
    </Menu>
  );
}

function CopyItem({ text, what }: { readonly text: string; readonly what: string }) {
  const copy = async () => {
    const isDone = await copyText(text);
    toast(isDone ? { kind: 'plain', text: `Copied as ${what}.` } : { kind: 'plain', text });
  };
  return (
    <button type="button" class="menu-item" title={text} onClick={() => void copy()}>
      Copy as {what}
    </button>
  );
}

interface ActionButtonProps {
  readonly action: Action;
  readonly isMain?: boolean;
  readonly isSmall?: boolean;
  readonly children?: ComponentChildren;
}

/** A button that does something, with its commands beside it. Without the right to do it there is none. */
export function ActionButton({ action, isMain = false, isSmall = false, children }: ActionButtonProps) {
  const [isBusy, setBusy] = useState(false);
  if (!may(action.scope)) return null;
  const run = async () => {
    setBusy(true);
    await perform(action);
    setBusy(false);
  };
  const look = action.isDangerous ? ' button-bad-quiet' : isMain ? ' button-main' : '';
  return (
    <span class="action">
      <button
        type="button"
        class={`button${look}${isSmall ? ' button-small' : ''}`}
        disabled={isBusy}
        onClick={() => void run()}
      >
        {children ?? action.label}
      </button>
      <CopyAs {...action} />
    </span>
  );
}
