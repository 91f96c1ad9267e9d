import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../fault/rig/repository.js';

/** The part of a JSON schema that is used here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly format?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: Schema;
}

/** One method of one path. */
export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Null when it takes no body. */
  readonly body: Schema | null;
}

interface Described {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** The OpenAPI document that the repository holds. */
export class ApiDocument {
  private constructor(
    readonly operations: readonly Operation[],
    private readonly schemas: Readonly<Record<string, Schema>>,
  ) {}

  static read(): ApiDocument {
    const text = readFileSync(join(repository, 'docs', 'openapi.json'), 'utf8');
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, Record<string, Described>>;
      components: { schemas: Record<string, Schema> };
    };
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, parameters = [], requestBody }]) => ({
        ...{ id: operationId, method: method.toUpperCase(), path, parameters },
        body: requestBody?.content['application/json']?.schema ?? null,
      })),
    );
    return new ApiDocument(operations, components.schemas);
  }

  /** The schema itself, behind however many references. */
  resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema;
    return this.resolve(this.schemas[schema.$ref.split('/').at(-1)!]!);
  }
}
