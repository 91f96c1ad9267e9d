import { createConfig, lintFromString } from '@redocly/openapi-core';

/** What Redocly's recommended rules find wrong with a document, one line each. */
export async function lintApiDocument(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  return problems.map(
    ({ ruleId, severity, message, location }) =>
      `${severity} ${ruleId} at ${location[0]?.pointer ?? ''}: ${message}`,
  );
}
