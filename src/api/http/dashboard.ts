import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import type { Compression, PageFile } from '../../host/page-files.js';

/**
 * Serves the files of the dashboard. They are public and hold no data: what the page shows it asks the API for, with the session
 * of its user. Addresses that only the page knows are answered with its shell.
 */

/** Text that comes from jobs can never become script: nothing inline, nothing from elsewhere, no script made from texts. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

const SHELL = 'index.html';
/** Vite puts a hash of the content into the names below this folder, so what such an address means never changes. */
const HASHED = /^assets\/.*-[\w-]{8,}\.\w+$/;
const KEPT_FOR_EVER = 'public, max-age=31536000, immutable';
/** What the shell is served for when nothing else is known about an address. Longer ones lead nowhere. */
const MOST_SEGMENTS = 16;

const BASE_PATH = /^(\/[\w.~-]+)*$/;

/** The setting as a path without a slash at its end; throws if it is none. */
export function readBasePath(setting: string): string {
  const path = setting.replace(/\/+$/, '');
  if (BASE_PATH.test(path) && !/\/\.{1,2}(\/|$)/.test(path)) return path;
  throw new PunctualError(
    'CONFIGURATION',
    `basePath: expected a path such as /punctual, got ${JSON.stringify(setting)}.`,
  );
}

/** A target without the prefix, for proxies that pass the prefix on. */
export function withoutPrefix(url: string, basePath: string): string {
  if (basePath === '' || !url.startsWith(basePath)) return url;
  const rest = url.slice(basePath.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') ? rest : url;
}

interface Shell {
  readonly bytes: Buffer;
  readonly hash: string;
}

export class Dashboard {
  /** The shell by the base that is written into it. */
  private readonly shells = new Map<string, Shell>();

  constructor(
    private readonly files: ReadonlyMap<string, PageFile>,
    /** First segments of the addresses that are not the page's. */
    private readonly reserved: ReadonlySet<string>,
    private readonly basePath = '',
  ) {}

  /** Answers a request that no route is for; false if the dashboard has nothing at its address either. */
  serve(request: FastifyRequest, reply: FastifyReply): boolean {
    if (request.method !== 'GET' && request.method !== 'HEAD') return false;
    // As it came: an encoded slash separates nothing.
    const path = (request.raw.url ?? '/').split(/[?#]/, 1)[0]!;
    const name = path.slice(1);
    const file = name === SHELL ? undefined : this.files.get(name);
    if (file) this.sendFile(request, reply, name, file);
    else if (this.isPage(request, path)) this.sendShell(request, reply, path);
    else return false;
    return true;
  }

  private isPage({ headers }: FastifyRequest, path: string): boolean {
    if (path === '/' || path === `/${SHELL}`) return true;
    const [, first = '', ...rest] = path.split('/');
    // A browser asks like that for pages alone; for a script that is missing it must not be given a page.
    const wantsPage = headers.accept?.includes('text/html') ?? false;
    return wantsPage && rest.length < MOST_SEGMENTS && !this.reserved.has(first);
  }

  private sendFile(request: FastifyRequest, reply: FastifyReply, name: string, file: PageFile): void {
    reply.header('cache-control', HASHED.test(name) ? KEPT_FOR_EVER : 'no-cache');
    reply.type(TYPES[file.extension] ?? 'application/octet-stream');
    if (file.compressed.size > 0) reply.header('vary', 'accept-encoding');
    const chosen = compressionFor(request.headers['accept-encoding'], file);
    if (chosen) reply.header('content-encoding', chosen);
    send(request, reply, chosen ? file.compressed.get(chosen)! : file.bytes, file.hash);
  }

  private sendShell(request: FastifyRequest, reply: FastifyReply, path: string): void {
    const { bytes, hash } = this.shellFor(this.basePath === '' ? baseOf(path) : `${this.basePath}/`);
    reply.header('cache-control', 'no-cache').type(TYPES['.html']!);
    send(request, reply, bytes, hash);
  }

  private shellFor(base: string): Shell {
    const known = this.shells.get(base);
    if (known) return known;
    const page = this.files.get(SHELL)!.bytes.toString('utf8');
    const text = page.replace(/<head[^>]*>/i, (head) => `${head}<base href="${escaped(base)}">`);
    const bytes = Buffer.from(text);
    const shell = { bytes, hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22) };
    this.shells.set(base, shell);
    return shell;
  }
}

/** The way back to the root, seen from an address: it is right behind every proxy that strips a prefix. */
function baseOf(path: string): string {
  const levels = path.split('/').length - 2;
  return levels === 0 ? './' : '../'.repeat(levels);
}

function send(request: FastifyRequest, reply: FastifyReply, bytes: Buffer, hash: string): void {
  const tag = `W/"${hash}"`;
  reply.headers(HEADERS).header('etag', tag);
  if (isKnown(request.headers['if-none-match'], tag)) reply.code(304).send();
  else reply.send(bytes);
}

function isKnown(header: string | undefined, tag: string): boolean {
  return header?.split(',').some((each) => each.trim() === tag) ?? false;
}

/** The smallest form that the client takes. */
function compressionFor(accepted: string | undefined, { compressed }: PageFile): Compression | null {
  const taken = (accepted ?? '').split(',').map((each) => each.trim().toLowerCase());
  const takes = (name: string) =>
    taken.some((each) => new RegExp(`^${name}($|;(?!\\s*q=0(\\.0*)?$))`).test(each));
  for (const name of ['br', 'gzip'] as const) if (compressed.has(name) && takes(name)) return name;
  return null;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
