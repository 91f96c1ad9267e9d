import { PeerTrust } from '../../cluster/peer-trust.js';
import { SETTINGS } from '../../core/config.js';
import type { NodeContext } from '../context.js';
import { ROUTES } from '../routes.js';
import { createHttpServer } from './server.js';

/** The text of the committed OpenAPI document, made without a running node. */
export async function openApiText(version: string): Promise<string> {
  const server = createHttpServer({
    node: {} as NodeContext,
    routes: ROUTES,
    authenticate: async () => null,
    limits: {
      maxBulkBytes: SETTINGS.maxBulkBytes.default,
      maxBulkJobs: SETTINGS.maxBulkJobs.default,
      maxPayload: SETTINGS.maxPayload.default,
      maxDepth: SETTINGS.maxDepth.default,
      maxConnections: SETTINGS.maxConnections.default,
    },
    forwarding: {
      shards: [],
      credentialFor: () => null,
      mark: () => '',
      isMark: () => false,
      trust: new PeerTrust(''),
    },
    log: { error: () => undefined },
    version,
    certificate: null,
    defaultTenant: 'default',
  });
  await server.ready();
  const document = server.swagger();
  await server.close();
  return `${JSON.stringify(document, null, 2)}\n`;
}
