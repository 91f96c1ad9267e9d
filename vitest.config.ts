import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Integration tests wait more than they compute, so more of them run side by side than there are cores.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'scripts/**/*.test.ts', 'test/*.test.ts'],
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/postgres-for-tests.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          pool: 'forks',
        },
      },
    ],
  },
});
