import type { FastifyRequest } from 'fastify';
import type { PunctualError } from '../../core/errors.js';
import type { Certificate } from '../../host/certificate.js';
import type { PageFile } from '../../host/page-files.js';
import type { NodeContext } from '../context.js';
import type { HttpLimits, Route } from '../route.js';
import type { Authenticate, Sessions } from './access.js';
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
  /** How browsers are signed in; without it only keys and tokens count. */
  readonly sessions?: Sessions;
  /** Calls back when the key of a waiting caller is not valid any more; answers with what ends the watch. */
  readonly watch?: WatchKey;
  readonly limits: HttpLimits;
  /** The time within which the body of a request must arrive, but for uploads; default a minute. */
  readonly bodyTimeoutMs?: number;
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
  /** The files of the dashboard; null or without an `index.html` where it was not built. */
  readonly pageFiles?: ReadonlyMap<string, PageFile> | null;
  /** The path below which a proxy shows the node; empty for none. */
  readonly basePath?: string;
  /** The tenant that an operator key acts for when the request names none. */
  readonly defaultTenant: string;
}
