/** What a JSON Schema says that a form can show. Whatever it cannot show is edited as JSON. */

export type Schema = Readonly<Record<string, unknown>>;

/** A field of a form. */
export type Shape =
  | { readonly kind: 'object'; readonly fields: readonly ShapeField[] }
  | { readonly kind: 'choice'; readonly values: readonly unknown[] }
  | { readonly kind: 'text'; readonly isLong: boolean }
  | { readonly kind: 'number'; readonly step: string; readonly min?: number; readonly max?: number }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'texts' }
  | { readonly kind: 'json' };

export interface ShapeField {
  readonly name: string;
  readonly title: string;
  readonly hint: string | undefined;
  readonly isRequired: boolean;
  readonly example: string | undefined;
  readonly shape: Shape;
}

/** Fields in fields, down to here; what is deeper is edited as JSON. */
const MOST_DEPTH = 4;
const MOST_FIELDS = 100;

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema itself, or the one that it refers to. */
function resolved(schema: unknown, root: Schema): Schema {
  if (!isSchema(schema)) return {};
  const match = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(schema.$ref ?? ''));
  if (!match) return schema;
  const named = root[match[1]!];
  const found = isSchema(named) ? named[match[2]!.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  // A chain of references may go round in a circle.
  return isSchema(found) && found.$ref === undefined ? found : {};
}

/** The shape of a payload; null if a form would show nothing of it. */
export function shapeOf(schema: unknown): (Shape & { readonly kind: 'object' }) | null {
  if (!isSchema(schema)) return null;
  const shape = read(schema, schema, 0);
  return shape.kind === 'object' && shape.fields.length > 0 ? shape : null;
}

function read(given: unknown, root: Schema, depth: number): Shape {
  const schema = resolved(given, root);
  const { type } = schema;
  if (Array.isArray(schema.enum) && schema.enum.length <= 200) return { kind: 'choice', values: schema.enum };
  if (['anyOf', 'oneOf', 'allOf', 'not'].some((name) => schema[name] !== undefined)) return { kind: 'json' };
  if (type === 'object' && isSchema(schema.properties) && depth < MOST_DEPTH)
    return objectShape(schema, root, depth);
  if (type === 'string') {
    const isLong = typeof schema.maxLength === 'number' && schema.maxLength > 200;
    return { kind: 'text', isLong };
  }
  if (type === 'number' || type === 'integer') return numberShape(schema);
  if (type === 'boolean') return { kind: 'boolean' };
  if (type === 'array' && resolved(schema.items, root).type === 'string') return { kind: 'texts' };
  return { kind: 'json' };
}

function numberShape({ type, minimum, maximum }: Schema): Shape {
  return {
    ...{ kind: 'number', step: type === 'integer' ? '1' : 'any' },
    ...(typeof minimum === 'number' && { min: minimum }),
    ...(typeof maximum === 'number' && { max: maximum }),
  };
}

function objectShape(schema: Schema, root: Schema, depth: number): Shape {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields = Object.entries(schema.properties as Schema).map(([name, each]): ShapeField => {
    const { title, description, examples, default: usual } = resolved(each, root);
    const example = Array.isArray(examples) ? examples[0] : usual;
    return {
      ...{ name, isRequired: required.has(name), shape: read(each, root, depth + 1) },
      title: typeof title === 'string' ? title : name,
      hint: typeof description === 'string' ? description : undefined,
      example:
        example === undefined ? undefined : typeof example === 'string' ? example : JSON.stringify(example),
    };
  });
  return fields.length <= MOST_FIELDS ? { kind: 'object', fields } : { kind: 'json' };
}
