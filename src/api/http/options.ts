import type { Config } from '../../core/config.js';
import type { UseCases } from '../use-cases.js';
import type { ForwardingOptions } from './forwarding.js';

/** The bounds of a request that the operator can set. */
export type HttpLimits = Pick<Config, 'maxBulkBytes' | 'maxPayload' | 'maxDepth'>;

/** Where the server tells what went wrong on our side; pino fits. */
export interface HttpLog {
  error(fields: object, message: string): void;
}

/** What an HTTP server is made of. */
export interface HttpServerOptions {
  readonly useCases: UseCases;
  readonly limits: HttpLimits;
  readonly log: HttpLog;
  /** How requests reach the leader when this node does not lead. */
  readonly forwarding: ForwardingOptions;
  /** The version of the program, as the OpenAPI document shows it. */
  readonly version: string;
  /** The tenant that an operator key acts for when the request names none. */
  readonly defaultTenant: string;
}
