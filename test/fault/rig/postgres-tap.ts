import type { Tap } from './tcp-proxy.js';

/**
 * Looks into the conversation with Postgres, to lose the answer to a commit. A statement outside a transaction
 * commits before the server says ReadyForQuery, so that is when the connection ends, with the answer unsent.
 */

const BIND = 0x42;
const QUERY = 0x51;
const READY = 0x5a;
const COMMAND_COMPLETE = 0x43;
/** What ReadyForQuery says outside a transaction. */
const IDLE = 0x49;

/** Chooses the statement whose answer is lost, by its prepared name, or `COMMIT`. */
export class LostCommits {
  #wanted: ReadonlySet<string> = new Set();
  #onLost: (statement: string) => void = () => undefined;

  /** Loses the answer to the next commit of one of the statements; resolves with its name. */
  loseNext(statements: readonly string[]): Promise<string> {
    this.#wanted = new Set(statements);
    return new Promise((resolve) => {
      this.#onLost = resolve;
    });
  }

  /** Loses nothing any more. */
  disarm(): void {
    this.#wanted = new Set();
  }

  /** A tap for one connection. */
  open = (end: () => void): Tap => new PostgresTap(end, this);

  /** Takes the order to lose this statement's answer, if it is one of those wanted. */
  take(statement: string): boolean {
    if (!this.#wanted.has(statement)) return false;
    return true;
  }

  lost(statement: string): void {
    this.#wanted = new Set();
    this.#onLost(statement);
  }
}

class PostgresTap implements Tap {
  readonly #client = new Frames(true);
  readonly #server = new Frames(false);
  #losing: string | null = null;
  #committed = false;
  #held: Buffer[] = [];

  constructor(
    private readonly end: () => void,
    private readonly orders: LostCommits,
  ) {}

  fromClient(chunk: Buffer): void {
    for (const { type, body } of this.#client.push(chunk)) {
      if (this.#losing !== null) return;
      const name = type === BIND ? statementOf(body) : type === QUERY ? text(body, 0) : null;
      if (name !== null && this.orders.take(name)) this.#losing = name;
    }
  }

  fromServer(chunk: Buffer): Buffer | null {
    const frames = this.#server.push(chunk);
    if (this.#losing === null) return chunk;
    this.#held.push(chunk);
    for (const { type, body } of frames) {
      if (type === COMMAND_COMPLETE) this.#committed = true;
      if (type === READY) return this.#ready(body[0] === IDLE);
    }
    return null;
  }

  /** Inside a transaction, or after an error, nothing was committed: the answer goes on its way after all. */
  #ready(idle: boolean): Buffer | null {
    const statement = this.#losing!;
    const held = Buffer.concat(this.#held.splice(0));
    this.#losing = null;
    if (!idle || !this.#committed || !this.orders.take(statement)) {
      this.#committed = false;
      return held;
    }
    this.orders.lost(statement);
    this.end();
    return null;
  }
}

interface Frame {
  readonly type: number;
  readonly body: Buffer;
}

/** Cuts a stream into messages. The first message of a client has no type. */
class Frames {
  #rest: Buffer = Buffer.alloc(0);

  constructor(private untyped: boolean) {}

  push(chunk: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const header = this.untyped ? 0 : 1;
      if (this.#rest.length < header + 4) return frames;
      const length = this.#rest.readInt32BE(header);
      if (this.#rest.length < header + length) return frames;
      const type = this.untyped ? 0 : this.#rest[0]!;
      frames.push({ type, body: this.#rest.subarray(header + 4, header + length) });
      this.#rest = this.#rest.subarray(header + length);
      this.untyped = false;
    }
  }
}

/** The second text of a Bind message, after the portal. */
function statementOf(body: Buffer): string {
  return text(body, body.indexOf(0) + 1);
}

function text(body: Buffer, from: number): string {
  return body.toString('utf8', from, body.indexOf(0, from));
}
