import type { FastifyInstance } from 'fastify';
import { attemptRoutes } from './attempts.js';
import { clusterRoutes } from './cluster.js';
import { healthRoutes } from './health.js';
import { internalRoutes } from './internal.js';
import { jobRoutes } from './jobs.js';
import { queueRoutes } from './queues.js';
import type { RouteParts } from './route-parts.js';
import { scheduleRoutes } from './schedules.js';
import { tenantRoutes } from './tenants.js';
import { workerRoutes } from './workers.js';

/** Registers every route of the API. No use-case is called meanwhile. */
export function registerRoutes(server: FastifyInstance, parts: RouteParts): void {
  jobRoutes(server, parts);
  attemptRoutes(server, parts);
  workerRoutes(server, parts);
  queueRoutes(server, parts);
  tenantRoutes(server, parts);
  scheduleRoutes(server, parts);
  clusterRoutes(server, parts);
  healthRoutes(server, parts);
  internalRoutes(server, parts);
}
