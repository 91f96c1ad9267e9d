import type { FastifyRequest } from 'fastify';
import type { PunctualError } from '../../core/errors.js';
import type { Certificate } from '../../host/certificate.js';
import type { NodeContext } from '../context.js';
import type { HttpLimits, Route } from '../route.js';
import type { Authenticate } from './access.js';
import type { ForwardingOptions } from './forwarding.js';
import type { WatchKey } from './long-polls.js';

/** The log for internal errors; compatible with pino. */
export interface HttpLog {
  error(fields: object, message: string): void;
}

/** What an HTTP server is made from. */
export interface HttpServerOptions {
  /** What the routes work with. */
  readonly node: NodeContext;
  readonly routes: readonly Route[];
  readonly authenticate: Authenticate;
  /** Calls back when the key of a waiting caller is not valid any more; answers with what ends the watch. */
  readonly watch?: WatchKey;
  readonly limits: HttpLimits;
  /** Where a request comes from; default the other end of its connection. */
  readonly clientAddress?: (request: FastifyRequest) => string | null;
  /** Takes note of a request of a key; throws if the key makes too many. */
  readonly countRequest?: (keyId: string) => void;
  /** Called with every error that is answered. */
  readonly onRefused?: (error: PunctualError) => void;
  readonly log: HttpLog;
  /** How requests reach the leader when this node does not lead. */
  readonly forwarding: ForwardingOptions;
  /** The version of the program, as the OpenAPI document shows it. */
  readonly version: string;
  /** The certificate to serve HTTPS with; null for HTTP. */
  readonly certificate: Certificate | null;
  /** The tenant that an operator key acts for when the request names none. */
  readonly defaultTenant: string;
}
