import Type, {
  type Static,
  type TObjectOptions,
  type TOptional,
  type TProperties,
  type TSchema,
} from 'typebox';

/** An object of an input: a field it does not know is an error, so that a typing mistake is not ignored. */
export function strict<P extends TProperties>(properties: P, options: TObjectOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** A value that an answer may leave open. */
export function nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

/** An answer with one page of a list; `next` goes into `?after=` for the following page. */
export function page<S extends TSchema>(title: string, item: S) {
  return Type.Object({ data: Type.Array(item), next: nullable(Type.String()) }, { title });
}

/** The body of a call that needs none: nothing, or an empty object. */
export const Nothing = strict({}, { title: 'Nothing' });

/** Marks the type of a parameter that has a value even where it is left out. */
export interface Defaulted {
  readonly '~defaulted': true;
}

/** A parameter that may be left out of a query and then has the schema's default. */
export function defaulted<S extends TSchema>(schema: S) {
  if (!('default' in schema)) throw new Error('the schema has no default');
  return Type.Optional(schema) as unknown as TOptional<S> & Defaulted;
}
/** The same, for reading only. */
export type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** The shape of what a schema describes. What came from outside is read, never written to. */
export type Shape<S extends TSchema> = Frozen<Static<S>>;
