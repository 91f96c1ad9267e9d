/** The reference as one plain page without scripts or external resources. */

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly object[];
  readonly 'x-scope'?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: object }>> };
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly content?: object }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: {
    readonly type?: string;
    readonly enum?: readonly string[];
    readonly description?: string;
    readonly default?: unknown;
    readonly minimum?: number;
    readonly maximum?: number;
    readonly examples?: readonly unknown[];
    readonly 'x-expected'?: string;
  };
}

/** What somebody who has only this page needs to make the first request. */
const HOW_TO_CALL = `<h2 id="requests">Requests</h2>
<p>Send a key with every request, unless the route says that it needs none: <code>authorization: Bearer KEY</code>. The key
says which tenant you are; an operator names one with the header <code>punctual-tenant</code>. Each route names the scope that
the key must have. Bodies are JSON with <code>content-type: application/json</code>.</p>
<pre>curl -H "authorization: Bearer $KEY" -H "content-type: application/json" \\
  -d '{"task": "greet", "payload": {"name": "Ada"}}' http://127.0.0.1:8080/v1/jobs</pre>
<p>Errors are <code>application/problem+json</code> with a stable <code>code</code>; <code>errors</code> names the fields. Lists
have <code>data</code> and <code>next</code>: pass <code>next</code> as <code>after</code> for the next page, until it is
null. Routes that take <code>idempotency-key</code> do what the same request with the same key asks for once in 24 hours, and
repeat their answer.</p>`;

/** The part of an OpenAPI document that the page shows. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, object>> };
}

/** The page that /docs answers with. */
export function docsPage(document: OpenApiDocument): string {
  const { title, version, description = '' } = document.info;
  const sections = (document.tags ?? []).map((tag) => section(document, tag.name, tag.description ?? ''));
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) =>
    schemaBlock(name, schema),
  );
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${text(title)} HTTP API</title><link rel="stylesheet" href="docs/style.css"></head><body><main>`,
    `<h1>${text(title)} HTTP API <small>${text(version)}</small></h1><p>${text(description)}</p>`,
    '<p>For programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>',
    HOW_TO_CALL,
    ...sections,
    '<h2 id="schemas">Schemas</h2>',
    ...schemas,
    '</main></body></html>\n',
  ].join('\n');
}

function section(document: OpenApiDocument, tag: string, description: string): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags?.includes(tag))
      .map(([method, operation]) => operationBlock(method.toUpperCase(), path, operation)),
  );
  return `<h2 id="${text(tag)}">${text(tag)}</h2><p>${text(description)}</p>\n${operations.join('\n')}`;
}

function operationBlock(method: string, path: string, operation: Operation): string {
  const body = operation.requestBody?.content?.['application/json']?.schema;
  const parameters = (operation.parameters ?? []).map(parameterLine);
  const scope = operation['x-scope'];
  const answers = Object.entries(operation.responses ?? {}).map(
    ([status, answer]) => `<li><b>${text(status)}</b> ${answerWords(answer)}</li>`,
  );
  return [
    `<details id="${text(operation.operationId ?? path)}"><summary><b>${method}</b> <code>${text(path)}</code> `,
    `<span>${text(operation.summary ?? '')}</span></summary><ul>`,
    operation.security?.length === 0 ? '<li>needs no key</li>' : '',
    scope !== undefined && scope !== 'public' ? `<li>scope: ${text(scope)}</li>` : '',
    ...parameters,
    body ? `<li>body: ${schemaWords(body)}</li>` : '',
    ...answers,
    '</ul></details>',
  ].join('');
}

function parameterLine({ name, in: place, required, description, schema = {} }: Parameter): string {
  const range = [schema.minimum, schema.maximum].every((bound) => bound !== undefined);
  const facts = [
    schema['x-expected'] ?? schema.enum?.join(', ') ?? schema.type,
    range && `${schema.minimum} to ${schema.maximum}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
    schema.examples?.[0] !== undefined && `such as ${schema.examples[0]}`,
    required && place !== 'path' && 'required',
  ].filter((fact) => typeof fact === 'string');
  const words = [facts.join('; '), description ?? schema.description ?? ''].filter(Boolean).join('. ');
  return `<li><code>${text(name)}</code> in the ${text(place)}${words ? `: ${text(words)}` : ''}</li>`;
}

function answerWords(answer: { readonly description?: string; readonly content?: object }): string {
  const [first] = Object.entries(answer.content ?? {}) as [string, { schema?: object }][];
  if (!first) return text(answer.description ?? '');
  const [type, { schema }] = first;
  if (!type.includes('json')) return `<code>${text(type)}</code> ${text(answer.description ?? '')}`;
  return schema ? schemaWords(schema) : text(answer.description ?? '');
}

function schemaWords(schema: object): string {
  const name = '$ref' in schema ? String(schema.$ref).split('/').at(-1) : undefined;
  return name ? `<a href="#schema-${text(name)}">${text(name)}</a>` : '<code>JSON</code>';
}

function schemaBlock(name: string, schema: object): string {
  const json = text(JSON.stringify(schema, null, 2));
  return `<details id="schema-${text(name)}"><summary><code>${text(name)}</code></summary><pre>${json}</pre></details>`;
}

function text(raw: string): string {
  return raw
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** The style sheet of the page, light or dark as the reader prefers. */
export const DOCS_STYLE = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 small { font-weight: normal; opacity: 0.6; }
h2 { margin-top: 2rem; text-transform: capitalize; }
details { border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 0.4rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
summary span { opacity: 0.7; }
details:target { outline: 2px solid; outline-offset: 2px; }
pre { overflow-x: auto; font-size: 0.85rem; }
`;
