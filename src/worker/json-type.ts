/** The type a value has after it was written as JSON and read back: a Date is a string, methods are gone. */
export type Json<T> = unknown extends T
  ? T
  : T extends { toJSON(): infer J }
    ? Json<J>
    : T extends string | number | boolean | null
      ? T
      : T extends undefined
        ? null
        : T extends bigint | symbol | ((...args: never[]) => unknown)
          ? never
          : T extends readonly unknown[]
            ? { [Index in keyof T]: Json<T[Index]> }
            : T extends object
              ? JsonObject<T>
              : never;

type JsonObject<T extends object> = {
  [Key in keyof T as Key extends string | number ? (Kept<T[Key]> extends never ? never : Key) : never]: Json<
    Exclude<T[Key], undefined>
  >;
};

/** What remains of a property's type; nothing if JSON leaves such a property out. */
type Kept<T> = unknown extends T ? T : Exclude<T, undefined | symbol | ((...args: never[]) => unknown)>;
