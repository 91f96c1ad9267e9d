import type { FastifyInstance } from 'fastify';
import { DOCS_STYLE, docsPage, type OpenApiDocument } from './docs-page.js';

const PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/** The reference that the server serves about itself: the OpenAPI document and a page to read. */
export function referenceRoutes(server: FastifyInstance): void {
  const hidden = { config: { access: 'public' as const }, schema: { hide: true } };
  const written: { document?: string; page?: string } = {};

  server.get('/openapi.json', hidden, async (_request, reply) => {
    written.document ??= JSON.stringify(server.swagger());
    return reply.type('application/json; charset=utf-8').send(written.document);
  });

  server.get('/docs', hidden, async (_request, reply) => {
    written.page ??= docsPage(server.swagger() as OpenApiDocument);
    return reply
      .header('content-security-policy', PAGE_POLICY)
      .type('text/html; charset=utf-8')
      .send(written.page);
  });

  server.get('/docs/style.css', hidden, async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=3600').type('text/css; charset=utf-8').send(DOCS_STYLE),
  );

  server.get('/', hidden, async (_request, reply) => reply.redirect('/docs'));
}
