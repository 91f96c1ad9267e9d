import type { Spread } from './statistics.js';

/** A target of the project, and whether this run reached it. */
export interface Target {
  readonly text: string;
  readonly wanted: string;
  readonly reached: string;
  readonly ok: boolean;
}

/** What one system came to in a scenario. */
export interface SystemResult extends Partial<Spread> {
  readonly name: string;
  readonly version: string;
  /** `ours` and `peer` are compared; `reference` is ours under other conditions, such as without the flood. */
  readonly role: 'ours' | 'peer' | 'reference';
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly jobs: number;
  readonly jobsPerSecond?: number;
  /** The rate of each slice, in the order they were run. */
  readonly slices?: readonly number[];
  /** The rate of each second, by slice. */
  readonly perSecond?: readonly (readonly number[])[];
  /** Further figures of the scenario, by name. */
  readonly [figure: string]: unknown;
}

/** What a scenario came to. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly seconds: number;
  /** What was done and what was measured, in words, for somebody who wants to repeat it. */
  readonly what: readonly string[];
  readonly systems: readonly SystemResult[];
  /** How many times as good as the best peer ours is; null where there is none. */
  readonly ratioToBestPeer: number | null;
  readonly targets: readonly Target[];
  /** What went wrong; nothing if all is well. */
  readonly problems: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Ours over the best peer, where more is better. */
export function ratioOfRates(systems: readonly SystemResult[]): number | null {
  const ours = systems.find(({ role }) => role === 'ours')?.jobsPerSecond;
  const peers = systems.filter(({ role }) => role === 'peer').map((peer) => peer.jobsPerSecond ?? 0);
  return ours === undefined || peers.length === 0 ? null : ours / Math.max(...peers);
}

/** The best peer over ours, where less is better. */
export function ratioOfDelays(systems: readonly SystemResult[]): number | null {
  const ours = systems.find(({ role }) => role === 'ours')?.p50Ms;
  const peers = systems
    .filter(({ role }) => role === 'peer')
    .map((peer) => peer.p50Ms ?? Number.POSITIVE_INFINITY);
  return ours === undefined || peers.length === 0 ? null : Math.min(...peers) / ours;
}

/** A target of the form "at least so many times". */
export function atLeast(text: string, wanted: number, value: number, unit = ' ×'): Target {
  const show = (number: number) => `${Number(number.toPrecision(5)).toLocaleString('en')}${unit}`;
  return { text, wanted: `≥ ${show(wanted)}`, reached: show(value), ok: value >= wanted };
}

/** A target of the form "at most so much". */
export function atMost(text: string, wanted: number, value: number, unit = ' ms'): Target {
  const show = (number: number) => `${Number(number.toPrecision(4)).toLocaleString('en')}${unit}`;
  return { text, wanted: `≤ ${show(wanted)}`, reached: show(value), ok: value <= wanted };
}
