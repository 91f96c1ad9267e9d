import type { Random } from '../../fault/random.js';
import type { Shot } from '../sender.js';
import type { Operation } from './document.js';
import type { Sampler } from './sample.js';
import { asBrokenText, ODD_TEXTS, type Spoilt, withOddValue, withOtherFields } from './spoil.js';

/** A request as the document has it, taken apart so that each part can be spoilt by itself. */
interface Parts {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Buffer | undefined;
  readonly about: string;
}

const CONTENT_TYPES = [
  'text/plain',
  'application/xml',
  'application/json; charset=utf-16',
  'application/json;;;',
  'APPLICATION/JSON',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'application/problem+json',
  'x',
  '',
];
const METHODS = ['PUT', 'DELETE', 'PATCH', 'POST', 'GET', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND', 'SEARCH'];
/** These would stop everybody's work, as they should when an operator asks; they are only sent when spoilt for certain. */
const SWITCHES = new Set(['pauseCluster', 'resumeCluster']);
const LONG_HEADER = 8_000;

/** Makes bad requests out of the operations of the document. */
export class BadRequests {
  constructor(
    private readonly operations: readonly Operation[],
    private readonly sampler: Sampler,
    private readonly random: Random,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  /** A bad request to the n-th operation, each in turn. */
  next(n: number): Shot {
    const operation = this.operations[n % this.operations.length]!;
    const spoilt = SWITCHES.has(operation.id)
      ? this.#unknownQuery(this.#good(operation))
      : this.#spoil(operation, this.#good(operation));
    const { method, path, query, headers, body, about } = spoilt;
    return { about, method, path: `${path}${query}`, headers, ...(body !== undefined && { body }) };
  }

  #good({ method, path, parameters, body }: Operation): Parts {
    const filled = parameters
      .filter((parameter) => parameter.in === 'path')
      .reduce((so, { name, schema }) => so.replace(`{${name}}`, this.#pathPart(path, name, schema)), path);
    const value = body === null ? undefined : this.sampler.of(body);
    const { 'content-type': type, ...bare } = this.headers;
    return {
      ...{ method, path: filled, query: '', about: 'as it should be' },
      headers: value === undefined ? bare : { ...bare, 'content-type': type! },
      body: value === undefined ? undefined : JSON.stringify(value),
    };
  }

  /** Names of workers and jobs that exist, so that a request comes as far as it can. */
  #pathPart(path: string, name: string, schema: Operation['parameters'][number]['schema']): string {
    const field = path.startsWith('/v1/workers') ? 'worker' : name;
    return encodeURIComponent(this.sampler.parameter(field, schema));
  }

  #spoil(operation: Operation, good: Parts): Parts {
    const hasBody = operation.body !== null;
    const ways: (() => Parts)[] = [
      () => this.#oddPath(operation, good),
      () => this.#oddQuery(operation, good),
      () => this.#unknownQuery(good),
      () => this.#oddHeader(good),
      () => this.#otherMethod(good),
    ];
    const bodies: (() => Parts)[] = [
      () => this.#withBody(good, withOddValue(this.sampler.of(operation.body!), this.random)),
      () => this.#withBody(good, withOtherFields(this.sampler.of(operation.body!), this.random)),
      () => this.#withBody(good, asBrokenText(this.sampler.of(operation.body!), this.random)),
      () => this.#oddType(good),
    ];
    // Most of what can go wrong is in the body, where there is one.
    return this.random.pick(
      hasBody ? [...ways, ...bodies, ...bodies] : [...ways, () => this.#unwanted(good)],
    )();
  }

  #withBody(good: Parts, { about, body }: Spoilt): Parts {
    return { ...good, about, body };
  }

  /** A body where none is wanted. */
  #unwanted(good: Parts): Parts {
    const { about, body } = withOddValue({ unwanted: [1] }, this.random);
    if (good.method === 'GET') return this.#oddHeader(good);
    const headers = { ...good.headers, 'content-type': 'application/json' };
    return { ...good, about: `an unwanted body with ${about}`, body, headers };
  }

  #oddType(good: Parts): Parts {
    const type = this.random.pick(CONTENT_TYPES);
    const headers = { ...good.headers, 'content-type': type };
    return { ...good, about: `content-type ${type}`, headers };
  }

  #oddPath({ path, parameters }: Operation, good: Parts): Parts {
    const inPath = parameters.filter((parameter) => parameter.in === 'path');
    const odd = this.random.pick(ODD_TEXTS);
    if (inPath.length === 0) return { ...good, about: 'a path that leads on', path: `${good.path}/${odd}` };
    const { name } = this.random.pick(inPath);
    return { ...good, about: `an odd ${name} in the path`, path: path.replaceAll(/\{[^}]+\}/g, () => odd) };
  }

  #oddQuery({ parameters }: Operation, good: Parts): Parts {
    const inQuery = parameters.filter((parameter) => parameter.in === 'query');
    if (inQuery.length === 0) return this.#unknownQuery(good);
    const { name } = this.random.pick(inQuery);
    const odd = this.random.pick(ODD_TEXTS);
    const query = this.random.pick([
      `?${name}=${odd}`,
      `?${name}=${odd}&${name}=${odd}`,
      `?${name}[]=${odd}`,
      `?${name}[a]=${odd}`,
      `?${name}`,
      `?${`${name}=${odd.slice(0, 8)}&`.repeat(100)}`,
    ]);
    return { ...good, about: `an odd ${name} in the query`, query };
  }

  #unknownQuery(good: Parts): Parts {
    const odd = this.random.pick(ODD_TEXTS);
    return { ...good, about: 'an unknown parameter', query: `?unknown=${odd}` };
  }

  #oddHeader(good: Parts): Parts {
    const other: readonly (readonly [string, string | string[] | undefined])[] = [
      ['authorization', undefined],
      ['authorization', 'Bearer'],
      ['authorization', 'Basic YTpi'],
      ['authorization', `Bearer pk_${'x'.repeat(LONG_HEADER)}`],
      ['authorization', 'Bearer \u00e9\u00ff'],
      ['authorization', ['Bearer a', 'Bearer b']],
      ['punctual-tenant', ''],
      ['punctual-tenant', '*'],
      ['punctual-tenant', 'x'.repeat(LONG_HEADER)],
      ['punctual-tenant', '\u00e9\u00ff'],
      ['punctual-tenant', ['a', 'b']],
      ['content-encoding', 'gzip'],
      ['content-encoding', 'identity, gzip'],
      ['accept', 'text/xml'],
      ['accept-encoding', 'x'],
      ['traceparent', '00-zz-zz-zz'],
      ['x-forwarded-for', '127.0.0.1'],
      ['x-http-method-override', 'DELETE'],
      ['if-none-match', '*'],
      ['range', 'bytes=0-1,5-'],
      ['request-id', 'x'.repeat(LONG_HEADER)],
      ['cookie', '__proto__=1'],
    ];
    const [name, value] = this.random.pick(other);
    const { [name]: _before, ...rest } = good.headers;
    return {
      ...good,
      about: value === undefined ? `without ${name}` : `an odd ${name} header`,
      headers: value === undefined ? rest : { ...rest, [name]: value },
    };
  }

  #otherMethod(good: Parts): Parts {
    const method = this.random.pick(METHODS.filter((one) => one !== good.method));
    const takesNoBody = method === 'GET' || method === 'HEAD' || method === 'TRACE';
    return { ...good, about: `instead of ${good.method}`, method, ...(takesNoBody && { body: undefined }) };
  }
}
