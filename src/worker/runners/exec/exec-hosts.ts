import { ExecHostProcess } from './exec-host-process.js';
import { forgetHost, noteHost } from './leftovers.js';
import type { Machine } from './machine.js';

/** The exec host of a worker: one at a time, started when it is needed and again when it has ended. */
export class ExecHosts {
  readonly #machine: Machine;
  readonly #folder: string;
  readonly #onLost: () => void;
  #current: { readonly host: ExecHostProcess; readonly up: Promise<unknown> } | null = null;
  #isClosed = false;

  /** `onLost` is told when a host has ended by itself. */
  constructor(machine: Machine, folder: string, onLost: () => void) {
    this.#machine = machine;
    this.#folder = folder;
    this.#onLost = onLost;
  }

  /** A host that is up; throws if it cannot be started. */
  async open(): Promise<ExecHostProcess> {
    this.#current ??= this.#start();
    const { host, up } = this.#current;
    await up;
    return host;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#current?.host.close();
  }

  #start(): { host: ExecHostProcess; up: Promise<unknown> } {
    const { hostNamespace, setpriv, prlimit, launcher } = this.#machine;
    const host = new ExecHostProcess(
      {
        namespace: 'use' in hostNamespace ? hostNamespace.use : null,
        launcher,
        // What the host may not do, nothing that it starts may do.
        around: [
          ...(setpriv === null ? [] : [setpriv, '--no-new-privs', '--']),
          ...(prlimit === null ? [] : [prlimit, '--core=0:0', '--']),
        ],
      },
      () => this.#ended(host),
    );
    const up = host.ready().then(({ pid }) => noteHost(this.#folder, pid));
    up.catch(() => undefined);
    return { host, up };
  }

  #ended(host: ExecHostProcess): void {
    if (this.#current?.host === host) this.#current = null;
    forgetHost(this.#folder);
    if (!this.#isClosed) this.#onLost();
  }
}
