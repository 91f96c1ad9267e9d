import { configDefaults, defineConfig } from 'vitest/config';

/** How long `expect.poll` waits: vitest's own second is too short on a busy machine. */
const PATIENT = { poll: { timeout: 15_000 } };

/** Workers of the tests themselves log nothing; processes that tests start have settings of their own. */
const QUIET = { PUNCTUAL_LOG_LEVEL: 'silent' };

/**
 * A process runs one file after another and keeps the modules that it has loaded. To load them anew for each file would take
 * longer than half of the tests. What a module remembers therefore outlives a file.
 */
const SHARED = { pool: 'forks' as const, isolate: false, setupFiles: ['test/fresh-ids.ts'] };

/** Tests that replace modules or weigh the memory of their process: each of them has a process of its own. */
const APART = ['src/api/submitter.test.ts', 'src/cli/command-log.test.ts', 'src/host/heap-pace.test.ts'];

/** The same of tests with a database: the garbage of other files would count as theirs. */
const APART_WITH_DATABASE = ['test/integration/large-bodies.test.ts'];

/** Tests of nodes, workers and commands with a database. */
const WITH_DATABASE = {
  expect: PATIENT,
  env: QUIET,
  globalSetup: ['test/postgres-for-tests.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // These tests wait more than they compute, so more of them run side by side than there are cores.
  maxWorkers: 3,
  sequence: { groupOrder: 1 },
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          expect: PATIENT,
          env: QUIET,
          testTimeout: 30_000,
          include: [
            'src/**/*.test.ts',
            'scripts/**/*.test.ts',
            'bench/src/**/*.test.ts',
            'dashboard/src/**/*.test.ts',
            'test/*.test.ts',
            'test/oracle/*.test.ts',
            'test/fault/checker.test.ts',
            'test/attack/judge.test.ts',
            'test/attack/generated/*.test.ts',
          ],
          exclude: [...configDefaults.exclude, ...APART],
          ...SHARED,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'unit-apart',
          expect: PATIENT,
          env: QUIET,
          testTimeout: 30_000,
          include: APART,
          maxWorkers: 2,
        },
      },
      {
        test: {
          ...WITH_DATABASE,
          ...SHARED,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...APART_WITH_DATABASE],
        },
      },
      {
        test: {
          ...WITH_DATABASE,
          pool: 'forks',
          name: 'integration-apart',
          include: APART_WITH_DATABASE,
        },
      },
      {
        test: {
          name: 'browser',
          expect: PATIENT,
          env: QUIET,
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/postgres-for-tests.ts', 'test/browser/browser-for-tests.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          pool: 'forks',
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Rounds of the fault harness and of the attack fill the machine, so they wait for the rest and run one after another.
        test: {
          name: 'fault',
          expect: PATIENT,
          include: ['test/fault/{fences,round}.test.ts', 'test/attack/round.test.ts'],
          testTimeout: 300_000,
          pool: 'forks',
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
