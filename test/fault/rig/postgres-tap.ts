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

/** One wish to lose the answer to a commit; several faults may have theirs at the same time. */
interface LostCommit {
  readonly statements: ReadonlySet<string>;
  readonly onLost: (statement: string) => void;
}

/** Chooses the statements whose answers are lost, by their prepared names. */
export class LostCommits {
  readonly #wanted = new Set<LostCommit>();

  /** Loses the answer to the next commit of one of the statements; the answer takes the wish back. */
  loseNext(statements: readonly string[], onLost: (statement: string) => void): () => void {
    const wish: LostCommit = { statements: new Set(statements), onLost };
    this.#wanted.add(wish);
    return () => void this.#wanted.delete(wish);
  }

  /** Loses nothing any more. */
  disarm(): void {
    this.#wanted.clear();
  }

  /** A tap for one connection. */
  open = (end: () => void): Tap => new PostgresTap(end, this);

  /** The wish that this statement would fulfil. */
  find(statement: string): LostCommit | undefined {
    return [...this.#wanted].find((wish) => wish.statements.has(statement));
  }

  lost(wish: LostCommit, statement: string): void {
    this.#wanted.delete(wish);
    wish.onLost(statement);
  }
}

class PostgresTap implements Tap {
  readonly #client = new Frames(true);
  readonly #server = new Frames(false);
  /** Statements of the transaction that is open, whose fate is its COMMIT's. */
  readonly #uncommitted = new Set<string>();
  #losing: string | null = null;
  #committed = false;
  #held: Buffer[] = [];

  constructor(
    private readonly end: () => void,
    private readonly orders: LostCommits,
  ) {}

  fromClient(chunk: Buffer): void {
    for (const { type, body } of this.#client.push(chunk)) {
      if (type === BIND) {
        this.#uncommitted.add(statementOf(body));
        this.#wantOne([statementOf(body)]);
      } else if (type === QUERY && text(body, 0) === 'COMMIT') this.#wantOne(this.#uncommitted);
    }
  }

  fromServer(chunk: Buffer): Buffer | null {
    const frames = this.#server.push(chunk);
    const idle = frames.some(({ type, body }) => type === READY && body[0] === IDLE);
    if (idle) this.#uncommitted.clear();
    if (this.#losing === null) return chunk;
    this.#held.push(chunk);
    for (const { type } of frames) {
      if (type === COMMAND_COMPLETE) this.#committed = true;
      if (type === READY) return this.#ready(idle);
    }
    return null;
  }

  #wantOne(statements: Iterable<string>): void {
    for (const statement of statements) {
      if (this.orders.find(statement)) this.#losing ??= statement;
    }
  }

  /** Inside a transaction, or after an error, nothing was committed: the answer goes on its way after all. */
  #ready(idle: boolean): Buffer | null {
    const statement = this.#losing!;
    const held = Buffer.concat(this.#held.splice(0));
    const wish = this.orders.find(statement);
    this.#losing = null;
    if (!idle || !this.#committed || !wish) {
      this.#committed = false;
      return held;
    }
    this.orders.lost(wish, statement);
    this.end();
    return null;
  }
}

interface Frame {
  readonly type: number;
  readonly body: Buffer;
}

/** As much of a message as anybody looks at; of a large one the rest passes unread. */
const MAX_BODY_BYTES = 4_096;

/** Cuts a stream into messages. The first message of a client has no type. */
class Frames {
  #rest: Buffer = Buffer.alloc(0);
  /** Bytes of a large message that are still to come, and its frame. */
  #passing = 0;
  #large: Frame | null = null;

  constructor(private untyped: boolean) {}

  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    const passed = Math.min(this.#passing, chunk.length);
    this.#passing -= passed;
    if (this.#passing > 0) return frames;
    if (this.#large) frames.push(this.#large);
    this.#large = null;
    const fresh = chunk.subarray(passed);
    this.#rest = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    for (;;) {
      const header = this.untyped ? 0 : 1;
      if (this.#rest.length < header + 4) return frames;
      const end = header + this.#rest.readInt32BE(header);
      const bodyEnd = Math.min(end, header + 4 + MAX_BODY_BYTES);
      if (this.#rest.length < bodyEnd) return frames;
      const type = this.untyped ? 0 : this.#rest[0]!;
      const frame: Frame = { type, body: this.#rest.subarray(header + 4, bodyEnd) };
      this.untyped = false;
      if (this.#rest.length < end) {
        this.#passing = end - this.#rest.length;
        this.#large = frame;
        this.#rest = Buffer.alloc(0);
        return frames;
      }
      frames.push(frame);
      this.#rest = this.#rest.subarray(end);
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
