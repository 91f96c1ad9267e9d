/** When a circuit opens, and how long it then pauses. */
export interface CircuitRules {
  /** The consecutive failures that open it. */
  readonly threshold: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

/**
 * `open`: no call goes out until its pause is over. `half-open`: the pause is over, and the next call is the probe. `probing`: the
 * probe is out, and nothing else goes out.
 */
export type CircuitState = 'closed' | 'open' | 'half-open' | 'probing';

/** The part of a pause by which it may be shorter, so that circuits that opened together do not probe together. */
const JITTER = 0.25;

/**
 * The circuit of one origin. Consecutive failures open it; each failed probe doubles its pause; any answer closes it. Failures of
 * calls that were out when it opened are counted, but prolong nothing: they tell no more than those that opened it.
 *
 * Moments are on the steady clock. Calls are named, so that the probe is known from calls that began before it.
 */
export class Circuit {
  /** Consecutive failures. */
  failures = 0;
  /** When the pause is over; null while it is closed. */
  openUntil: number | null = null;
  /** How many pauses there have been since it was closed. */
  private pauses = 0;
  private probe: string | null = null;

  constructor(private readonly rules: CircuitRules) {}

  stateAt(now: number): CircuitState {
    if (this.openUntil === null) return 'closed';
    if (this.probe !== null) return 'probing';
    return now < this.openUntil ? 'open' : 'half-open';
  }

  /** A call goes out; after a pause it is the probe. */
  began(call: string, now: number): void {
    if (this.stateAt(now) === 'half-open') this.probe = call;
  }

  /** A call has ended, or did not begin, without telling anything; if it was the probe, the next call is. */
  over(call: string): void {
    if (this.probe === call) this.probe = null;
  }

  /** A call failed in a way that says that the origin is down; answers whether that opened the circuit. */
  failed(call: string, now: number, random: number): boolean {
    this.failures += 1;
    const isProbe = this.probe === call;
    const opens = this.openUntil === null && this.failures >= this.rules.threshold;
    if (isProbe || opens) this.pause(now, random);
    return opens;
  }

  /** The origin has answered; answers whether that closed the circuit. */
  answered(): boolean {
    const wasOpen = this.openUntil !== null;
    this.failures = 0;
    this.openUntil = null;
    this.pauses = 0;
    this.probe = null;
    return wasOpen;
  }

  private pause(now: number, random: number): void {
    const { firstPauseMs, longestPauseMs } = this.rules;
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.pauses, 30));
    this.pauses += 1;
    this.probe = null;
    this.openUntil = now + Math.ceil(pauseMs * (1 - JITTER * random));
  }
}
