import { forgetUuids } from '../src/core/uuid.js';

// Runs before each file. Ids never go back, so a file that moved time would leave its future to the next in its process.
forgetUuids();
