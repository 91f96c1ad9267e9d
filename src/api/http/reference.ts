import { AnyQuery } from '../../core/schemas/query.js';
import { Answer, type Route, route } from '../route.js';
import { DOCS_STYLE, docsPage, type OpenApiDocument } from './docs-page.js';

const PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

const common = { method: 'GET', tag: 'internal', scope: 'public', query: AnyQuery } as const;

const ROOT = route({
  ...common,
  id: 'root',
  path: '/',
  summary: 'Leads to the page.',
  answers: { 302: 'The page is elsewhere.' },
  run: () => new Answer(302, undefined, { location: 'docs' }),
});

/** The routes of the reference: the OpenAPI document and a page made from it, to which the root leads if nothing else is there. */
export function referenceRoutes(
  document: () => Promise<OpenApiDocument>,
  isRootFree: boolean,
): readonly Route[] {
  const written: { document?: Promise<OpenApiDocument>; json?: string; page?: string } = {};
  const made = () => {
    written.document ??= document();
    return written.document;
  };
  return [
    route({
      ...common,
      id: 'openApi',
      path: '/openapi.json',
      summary: 'The OpenAPI document.',
      answers: {
        200: { kind: 'text', type: 'application/json; charset=utf-8', description: 'The document.' },
      },
      run: async () => {
        written.json ??= JSON.stringify(await made());
        return written.json;
      },
    }),
    route({
      ...common,
      id: 'docs',
      path: '/docs',
      summary: 'The document as a page.',
      answers: { 200: { kind: 'text', type: 'text/html; charset=utf-8', description: 'The page.' } },
      run: async () => {
        written.page ??= docsPage(await made());
        return new Answer(200, written.page, { 'content-security-policy': PAGE_POLICY });
      },
    }),
    route({
      ...common,
      id: 'docsStyle',
      path: '/docs/style.css',
      summary: 'How the page looks.',
      answers: { 200: { kind: 'text', type: 'text/css; charset=utf-8', description: 'The style.' } },
      run: () => new Answer(200, DOCS_STYLE, { 'cache-control': 'public, max-age=3600' }),
    }),
    ...(isRootFree ? [ROOT] : []),
  ];
}
