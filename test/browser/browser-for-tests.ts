import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { DASHBOARD_FOLDER } from '../../src/host/page-files.js';
import { startChromium } from './chromium.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where the browser that all browser tests share can be reached. */
    readonly browserEndpoint: string;
  }
}

/** Starts one browser for all browser tests; each has a profile of its own in it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!existsSync(join(DASHBOARD_FOLDER, 'index.html')))
    throw new Error('The dashboard is not built; `npm run build` does it.');
  const server = await startChromium();
  project.provide('browserEndpoint', server.wsEndpoint());
  return () => server.close();
}
