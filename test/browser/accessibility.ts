import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Fails if axe finds anything wrong with the page, in the light or in the dark theme. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violationsOf(page), colorScheme).toEqual([]);
  }
}

async function violationsOf(page: Page): Promise<string[]> {
  // As the debugger does it, because the page's policy takes no script from elsewhere.
  await page.evaluate(`if (!window.axe) { ${AXE} }`);
  const violations = await page.evaluate<readonly Violation[]>('axe.run().then((found) => found.violations)');
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${help}): ${html} ${failureSummary ?? ''}`),
  );
}
