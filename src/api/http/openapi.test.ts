import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { lintApiDocument } from '../../../test/generated-client/lint.js';
import { VERSION } from '../../core/version.js';
import { openApiText } from './openapi.js';
import { testServer } from './routes.fixture.js';

describe('the OpenAPI document', () => {
  it('is committed as it is generated; if not: npm run build && node scripts/openapi.mjs', async () => {
    const committed = await readFile(new URL('../../../docs/openapi.json', import.meta.url), 'utf8');
    expect(JSON.parse(committed)).toEqual(JSON.parse(await openApiText(VERSION)));
  });

  it('has no reference that leads nowhere, and names every operation once', async () => {
    const text = await openApiText(VERSION);
    const document = JSON.parse(text) as {
      openapi: string;
      paths: Record<string, Record<string, { operationId: string }>>;
      components: { schemas: Record<string, unknown> };
    };
    expect(document.openapi).toBe('3.1.0');
    const references = [...text.matchAll(/"\$ref": "#\/components\/schemas\/([^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect(references.filter((name) => !(name! in document.components.schemas))).toEqual([]);
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('has nothing for a linter to find', async () => {
    expect(await lintApiDocument(await openApiText(VERSION))).toEqual([]);
  }, 30_000);

  it('gives no field of a body a default, because generated clients would then demand the field', async () => {
    const { components } = JSON.parse(await openApiText(VERSION));
    expect(JSON.stringify(components)).not.toContain('"default":');
    expect(components.schemas.JobSubmission.properties.priority.description).toContain('Default: 5.');
  });

  it('requires no body that may be left out', async () => {
    const { paths } = JSON.parse(await openApiText(VERSION));
    expect(paths['/v1/workers/{id}'].delete.requestBody.required).toBe(false);
    expect(paths['/v1/keys/{id}/rotate'].post.requestBody.required).toBe(false);
    expect(paths['/v1/jobs'].post.requestBody.required).toBe(true);
    expect(paths['/v1/jobs/cancel'].post.requestBody.required).toBe(true);
    expect(JSON.stringify(paths)).not.toContain('x-optional-body');
  });

  it('is served, and so is a page made from it', async () => {
    const { server } = testServer();
    const document = await server.inject('/openapi.json');
    expect(document.headers['content-type']).toContain('application/json');
    expect(document.json().paths).toHaveProperty('/v1/jobs');
    const page = await server.inject('/docs');
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.body).toContain('/v1/jobs/{id}/why');
    expect(page.body).not.toContain('<script');
    // Enough for the first request: how to send a key, which scope it must have, and what a parameter may be.
    expect(page.body).toContain('authorization: Bearer');
    expect(page.body).toContain('scope: submit');
    expect(page.body).toMatch(/<code>limit<\/code> in the query: integer; 1 to 1000; default 100/);
    expect(page.body).toContain('<code>text/event-stream</code>');
    expect((await server.inject('/')).headers.location).toBe('docs');
  });
});
