import type { ChildProcess } from 'node:child_process';
import { type Account, type Starts, Waiters } from '../ledger.js';

/** What the process that keeps a ledger is told. */
export type ToLedger =
  | { readonly type: 'begin'; readonly moment: number }
  | { readonly type: 'account'; readonly submitted: number };

/** What it tells. */
export type FromLedger =
  | { readonly type: 'started'; readonly count: number }
  | { readonly type: 'account'; readonly account: Account };

/** How often the submitter hears how far the other process is. */
export const TELL_EVERY_MS = 10;

/** The starts in another process, as it tells of them. */
export class RemoteStarts implements Starts {
  started = 0;
  readonly #waiters = new Waiters();
  readonly #child: ChildProcess;
  #onAccount!: (account: Account) => void;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message: FromLedger) => this.#take(message));
  }

  begin(moment: number): void {
    this.#send({ type: 'begin', moment });
  }

  async reached(count: number): Promise<void> {
    if (this.started < count) await this.#waiters.wait(count);
  }

  account(submitted: number): Promise<Account> {
    return new Promise((resolve) => {
      this.#onAccount = resolve;
      this.#send({ type: 'account', submitted });
    });
  }

  #send(message: ToLedger): void {
    this.#child.send(message);
  }

  #take(message: FromLedger): void {
    if (message.type === 'started') {
      this.started = message.count;
      this.#waiters.reached(this.started);
    }
    if (message.type === 'account') this.#onAccount(message.account);
  }
}

/** Resolves with the next message of this type. */
export function nextMessage<M extends { readonly type: string }, T extends M['type']>(
  child: ChildProcess,
  type: T,
): Promise<Extract<M, { readonly type: T }>> {
  return new Promise((resolve) => {
    const take = (message: M) => {
      if (message.type !== type) return;
      child.off('message', take);
      resolve(message as Extract<M, { readonly type: T }>);
    };
    child.on('message', take);
  });
}
