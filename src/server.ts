export type { Clock, Timer } from './core/clock.js';
export type { ConfigInput } from './core/config.js';
export type { Log } from './core/log.js';
export { type EmbeddedNode, type StartNodeOptions, startNode } from './node/embed.js';
