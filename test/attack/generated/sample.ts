import type { Random } from '../../fault/random.js';
import type { ApiDocument, Schema } from './document.js';
import { TRUSTED } from './spoil.js';

const MAX_LEVELS = 6;

/** What there is in the cluster that a request can name. */
export interface Known {
  readonly job: string;
  readonly worker: string;
}

/** Values as a schema wants them, or nearly so: what is then spoilt should be refused for that and nothing else. */
export class Sampler {
  constructor(
    private readonly document: ApiDocument,
    private readonly known: Known,
    private readonly random: Random,
  ) {}

  /** A value for a schema; `name` is the field that it is for. */
  of(given: Schema, name = '', level = 0): unknown {
    const schema = this.document.resolve(given);
    if (name === TRUSTED) return schema.minimum ?? 0;
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return this.of(this.random.pick(choices), name, level);
    if ('const' in schema) return schema.const;
    if (schema.enum) return this.random.pick(schema.enum);
    const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0];
    switch (type) {
      case 'object':
        return this.#object(schema, level);
      case 'array':
        return level > MAX_LEVELS || !schema.items
          ? []
          : Array.from({ length: this.random.between(1, 2) }, () => this.of(schema.items!, name, level + 1));
      case 'integer':
      case 'number':
        return Math.min(schema.maximum ?? 5, Math.max(schema.minimum ?? 0, this.random.between(1, 5)));
      case 'boolean':
        return this.random.next() < 0.5;
      case 'string':
        return this.#text(schema, name);
      case 'null':
        return null;
      default:
        return { any: ['thing', 1, null, true] };
    }
  }

  /** A value for a parameter of a path or a query, as text. */
  parameter(name: string, schema: Schema): string {
    const value = this.of(schema, name);
    return typeof value === 'string' ? value : JSON.stringify(value);
  }

  #object({ properties = {}, required = [] }: Schema, level: number): Record<string, unknown> {
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    const chosen = level > MAX_LEVELS ? [] : optional.filter(() => this.random.next() < 0.3);
    const fields = [...required, ...chosen].map((name) => [
      name,
      this.of(properties[name] ?? {}, name, level + 1),
    ]);
    return Object.fromEntries(fields) as Record<string, unknown>;
  }

  #text({ format, pattern = '', examples = [] }: Schema, name: string): string {
    if (format === 'uuid') return name === 'worker' ? this.known.worker : this.known.job;
    if (format === 'date-time') return '2031-05-06T07:08:09Z';
    // Waits are to end soon, and a job that is made by the way is not to start.
    if (name === 'wait') return '50ms';
    if (typeof examples[0] === 'string') return examples[0];
    if (/ms\|s\|m/.test(pattern)) return '30s';
    if (name === 'cron') return '0 3 * * *';
    if (name === 'url') return 'http://127.0.0.1:9/';
    return `${name || 'some'}-${this.random.between(0, 9)}`;
  }
}
