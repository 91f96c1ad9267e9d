import type { Random } from '../fault/random.js';
import type { Postgres } from '../fault/rig/postgres.js';
import type { Attack } from './attack.js';
import { judgeAnswer, type Violation } from './judge.js';
import { parsed, type Received, type Sender, type Shot, type Target } from './sender.js';

/** The tenant in whose name attacks are made; the calm client is another. */
export const ATTACKER = 'attacker';

export interface SceneOptions {
  readonly attack: Attack;
  readonly sender: Sender;
  readonly leader: Target;
  readonly follower: Target;
  readonly apiKey: string;
  readonly postgres: Postgres;
  /** When half of the attack's time is up: what comes first must leave time for what it prepares. */
  readonly halfOver: AbortSignal;
  /** Aborts when the time of the attack is up. */
  readonly over: AbortSignal;
  /** Aborts some seconds later: what is under way then is given up. */
  readonly abandoned: AbortSignal;
}

/** What an attack can use, and the notes on what came of it. */
export class Scene {
  readonly violations: Violation[] = [];
  /** Answers by status; `none` for those that never came. */
  readonly statuses = new Map<string, number>();
  readonly leader: Target;
  readonly follower: Target;
  readonly postgres: Postgres;
  slowestMs = 0;
  largestBytes = 0;

  constructor(private readonly options: SceneOptions) {
    this.leader = options.leader;
    this.follower = options.follower;
    this.postgres = options.postgres;
  }

  get isOver(): boolean {
    return this.options.over.aborted;
  }

  get isHalfOver(): boolean {
    return this.options.halfOver.aborted;
  }

  get abandoned(): AbortSignal {
    return this.options.abandoned;
  }

  get apiKey(): string {
    return this.options.apiKey;
  }

  someNode(random: Random): Target {
    return random.pick([this.leader, this.follower]);
  }

  /** Headers of a request that is as it should be. */
  get headers(): Record<string, string> {
    return {
      authorization: `Bearer ${this.options.apiKey}`,
      'punctual-tenant': ATTACKER,
      'content-type': 'application/json',
    };
  }

  /** Sends a request and judges its answer. */
  async send(target: Target, shot: Shot): Promise<Received> {
    const { sender, abandoned } = this.options;
    const answer = await sender.send(target, { headers: this.headers, ...shot }, abandoned);
    if (answer.status === null && abandoned.aborted) return answer;
    this.note(answer);
    return answer;
  }

  /** Counts and judges an answer. */
  note(answer: Received): void {
    const status = String(answer.status ?? 'none');
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    this.slowestMs = Math.max(this.slowestMs, answer.ms);
    this.largestBytes = Math.max(this.largestBytes, answer.bytes);
    const { attack } = this.options;
    for (const violation of judgeAnswer(answer, attack.kind, attack)) this.violations.push(violation);
  }

  /** Calls a route as a program would; answers with the JSON of a success, and null for anything else. */
  async call<T>(
    target: Target,
    method: string,
    path: string,
    body?: unknown,
    about = 'set up',
  ): Promise<T | null> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const shot = { about, method, path, ...(body !== undefined && { body: text }) };
    const answer = await this.send(target, body === undefined ? this.#bare(shot) : shot);
    const { status } = answer;
    return status !== null && status < 300 ? (parsed(answer.body) as T) : null;
  }

  /** Notes an answer that is wrong although nothing about its form is. */
  wrong(detail: string): void {
    this.violations.push({ rule: 'right-answer', attack: this.options.attack.kind, detail });
  }

  /** Runs `step` in so many lanes until the time is up, or `count` steps have been made. */
  async inLanes(lanes: number, count: number, step: (n: number) => Promise<unknown>): Promise<void> {
    let next = 0;
    const lane = async () => {
      while (!this.isOver && next < count) {
        next += 1;
        await step(next - 1);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  #bare(shot: Shot): Shot {
    const { 'content-type': _type, ...headers } = this.headers;
    return { ...shot, headers };
  }
}
