import type { Death } from '../history.js';
import { freePort } from './free-port.js';
import { Member } from './member.js';
import type { Postgres } from './postgres.js';
import { LostCommits } from './postgres-tap.js';
import { TcpProxy } from './tcp-proxy.js';

/** A node gives up when the database does not answer; outages of the harness are shorter than all tries. */
const START_TRIES = 60;

/** A port on which nothing listens. */
const NOBODY = 1;

/** What all members of a run share. */
export interface Surroundings {
  readonly folder: string;
  readonly apiKey: () => string;
  /** Called when a member has ended although nobody had told it to. */
  readonly onDeath: (death: Death) => void;
  readonly environment: Readonly<Record<string, string>>;
  /** The environment that makes one member's wall clock wrong on demand. */
  readonly clockOf: (slot: string) => Readonly<Record<string, string>>;
  /** Where receivers of calls report, if there are any. */
  readonly reportTo: string | null;
  /** Whether workers run programs. */
  readonly runsPrograms: boolean;
  /** Whether members reach each other and the database past the proxies, which cost time of the harness. */
  readonly direct: boolean;
}

/** A place for a node: its proxies stay while processes come and go. */
export class NodeSlot {
  readonly lostCommits = new LostCommits();
  member!: Member;
  /** The way to the database, of this node alone. */
  database!: TcpProxy;
  /** The way of other nodes to this one. */
  peers!: TcpProxy;
  /** Whether new connections to the database are refused, whatever faults do to its link. */
  isCutOff = false;
  #port = 0;
  #incarnation = 0;
  #starting: Promise<void> | null = null;

  constructor(
    readonly name: string,
    private readonly postgres: Postgres,
    private readonly surroundings: Surroundings,
  ) {}

  async open(): Promise<void> {
    const port = () => (this.isCutOff ? NOBODY : this.postgres.port);
    this.database = await TcpProxy.open(port, this.lostCommits.open);
    this.peers = await TcpProxy.open(() => this.#port);
    await this.start();
  }

  /** Where the harness's own clients reach the node, past the proxies. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Starts a new process unless one runs, and another if that cannot begin because the database is away just now. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(): Promise<void> {
    if (this.#incarnation > 0 && this.member.isAlive) return;
    for (let left = START_TRIES - 1; ; left -= 1) {
      await this.#spawn();
      try {
        return await this.member.ready;
      } catch (error) {
        if (left === 0) throw error;
      }
    }
  }

  /** Lets everything pass again. */
  heal(): void {
    this.database.become({ kind: 'open' });
    this.peers.become({ kind: 'open' });
    this.lostCommits.disarm();
    this.isCutOff = false;
  }

  async close(): Promise<void> {
    this.heal();
    await this.member.stop();
    await Promise.all([this.database.close(), this.peers.close()]);
  }

  async #spawn(): Promise<void> {
    this.#port = await freePort();
    this.#incarnation += 1;
    const name = `${this.name}.${this.#incarnation}`;
    const databaseUrl = new URL(this.postgres.url);
    const { direct } = this.surroundings;
    if (!direct) databaseUrl.port = String(this.database.port);
    this.member = new Member({
      name,
      args: ['server', '--id', name],
      environment: {
        ...this.surroundings.environment,
        ...this.surroundings.clockOf(this.name),
        PUNCTUAL_DATABASE_URL: databaseUrl.href,
        PUNCTUAL_PORT: String(this.#port),
        PUNCTUAL_ADVERTISE_URL: `http://127.0.0.1:${direct ? this.#port : this.peers.port}`,
      },
      logFile: `${this.surroundings.folder}/${this.name}.log`,
      onDeath: (death) => {
        this.surroundings.onDeath(death);
        void this.start();
      },
    });
  }
}
