import { addedStepRoutes } from './added-steps.js';
import { artifactDownloadRoutes } from './artifact-downloads.js';
import { artifactUploadRoutes } from './artifact-uploads.js';
import { artifactRoutes } from './artifacts.js';
import { attemptArtifactRoutes } from './attempt-artifacts.js';
import { attemptSecretRoutes } from './attempt-secrets.js';
import { attemptRoutes } from './attempts.js';
import { auditRoutes } from './audit.js';
import { batchRoutes } from './batches.js';
import { clusterRoutes } from './cluster.js';
import { errorRoutes } from './error-groups.js';
import { eventRoutes } from './events.js';
import { forecastRoutes } from './forecast.js';
import { healthRoutes } from './health.js';
import { idRoutes } from './ids.js';
import { jobOutputRoutes } from './job-outputs.js';
import { jobRoutes } from './jobs.js';
import { keyRoutes } from './keys.js';
import { manyJobRoutes } from './many-jobs.js';
import { originRoutes } from './origins.js';
import { peerRoutes } from './peers.js';
import { queueRoutes } from './queues.js';
import type { Route } from './route.js';
import { scheduleRoutes } from './schedules.js';
import { secretKeyRoutes } from './secret-keys.js';
import { secretRoutes } from './secrets.js';
import { sessionRoutes } from './sessions.js';
import { signingSecretRoutes } from './signing-secrets.js';
import { taskRoutes } from './tasks.js';
import { tenantRoutes } from './tenants.js';
import { workerRoutes } from './workers.js';
import { definitionRoutes } from './workflow-definitions.js';
import { workflowRoutes } from './workflows.js';

/** Every route of a node. */
export const ROUTES: readonly Route[] = [
  ...jobRoutes,
  ...manyJobRoutes,
  ...batchRoutes,
  ...idRoutes,
  ...attemptRoutes,
  ...jobOutputRoutes,
  ...workerRoutes,
  ...attemptSecretRoutes,
  ...attemptArtifactRoutes,
  ...artifactRoutes,
  ...artifactUploadRoutes,
  ...artifactDownloadRoutes,
  ...queueRoutes,
  ...originRoutes,
  ...taskRoutes,
  ...tenantRoutes,
  ...keyRoutes,
  ...sessionRoutes,
  ...secretRoutes,
  ...signingSecretRoutes,
  ...secretKeyRoutes,
  ...auditRoutes,
  ...scheduleRoutes,
  ...workflowRoutes,
  ...definitionRoutes,
  ...addedStepRoutes,
  ...errorRoutes,
  ...forecastRoutes,
  ...eventRoutes,
  ...clusterRoutes,
  ...healthRoutes,
  ...peerRoutes,
];
