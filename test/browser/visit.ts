import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { inject, onTestFinished } from 'vitest';
import type { SignInCode } from '../../src/core/session.js';
import type { TestNode } from '../node-for-tests.js';

/** What a visitor of the dashboard has. */
export interface VisitOptions {
  /** Signs in with this key before the page is opened; null does not. Default: the operator's. */
  readonly key?: string | null;
  readonly path?: string;
  readonly theme?: 'light' | 'dark';
  readonly size?: { readonly width: number; readonly height: number };
  /** Where the dashboard is, if not at the node itself. */
  readonly url?: string;
}

let browser: Promise<Browser> | undefined;

/** The browser of the project; one connection for each file. */
function theBrowser(): Promise<Browser> {
  browser ??= chromium.connect(inject('browserEndpoint'));
  return browser;
}

/** What browsers report for answers that refuse; tests of those say so. */
const REFUSED = /^Failed to load resource: the server responded with a status of 401/;

/**
 * Somebody at a page of the dashboard, in a profile of their own. A test fails if its page reports an error, breaks its own
 * policy, or asks another host for anything.
 */
export class Visit {
  readonly faults: string[] = [];
  readonly #expected: RegExp[] = [REFUSED];
  /** All requests of the page, as `GET /v1/jobs`. */
  readonly requests: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    readonly root: string,
  ) {}

  static async begin(node: TestNode, options: VisitOptions = {}): Promise<Visit> {
    const { key = node.apiKey, path = '/', theme = 'light', size = { width: 1_280, height: 800 } } = options;
    const root = (options.url ?? node.url).replace(/\/$/, '');
    const context = await (await theBrowser()).newContext({
      // The locale of the environment may be one that the page's formats do not know.
      locale: 'en-US',
      timezoneId: 'Europe/Berlin',
      colorScheme: theme,
      viewport: size,
      reducedMotion: 'reduce',
    });
    const visit = new Visit(context, await context.newPage(), root);
    onTestFinished(() => visit.end(), 30_000);
    visit.watch(visit.page);
    const code = key === null ? null : await signInCode(node, key);
    await visit.page.goto(`${root}${path}${code === null ? '' : `#code=${code}`}`);
    if (code !== null) await visit.page.locator('#navigation').waitFor({ state: 'attached' });
    return visit;
  }

  /** Another tab of the same profile. */
  async tab(path = '/'): Promise<Page> {
    const page = await this.context.newPage();
    this.watch(page);
    await page.goto(this.root + path);
    return page;
  }

  /** Says that a test brings about what would otherwise be a fault. */
  expects(fault: RegExp): void {
    this.#expected.push(fault);
  }

  private watch(page: Page): void {
    const { host } = new URL(this.root);
    page.on('console', (message) => {
      if (message.type() === 'error') this.note(message.text());
    });
    page.on('pageerror', (error) => this.note(`${error.name}: ${error.message}\n${error.stack}`));
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.host !== host) this.note(`asked ${request.url()}`);
      else this.requests.push(`${request.method()} ${url.pathname}${url.search}`);
    });
  }

  private note(fault: string): void {
    this.faults.push(fault);
  }

  private async end(): Promise<void> {
    await this.context.close();
    const found = this.faults.filter((fault) => !this.#expected.some((each) => each.test(fault)));
    if (found.length > 0) throw new Error(`The page reported:\n${found.join('\n')}`);
  }
}

/** A code that signs in once with the rights of a key. */
export async function signInCode(node: TestNode, key: string): Promise<string> {
  return (await node.get<SignInCode>('POST', '/v1/session/codes', { key })).code;
}
