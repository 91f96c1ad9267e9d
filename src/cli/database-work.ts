/** What commands do with a database. It is imported when one of them runs, so that all others start faster without it. */

export { embeddedUrls } from '../embedded/embedded-postgres.js';
export { connect, migrate, migrationStatus } from '../store/migrate.js';
export { createOperatorKey } from '../store/operator-key.js';
export { findSettingsBy } from '../store/pooler.js';
export { readAuditChain } from '../store/read-audit-chain.js';
export { grantSubmit, listSubmitGrants, revokeSubmit } from '../store/submit-grants.js';
export { findWall, raiseWall } from '../store/tenant-wall.js';
