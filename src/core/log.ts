/** The part of a structured logger that the product uses; pino has it. */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** A log that drops everything. */
export const SILENT_LOG: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

const METHODS = ['debug', 'info', 'warn', 'error'] as const;

/** Whether a value has the methods of a log. */
export function isLog(value: unknown): value is Log {
  if (typeof value !== 'object' || value === null) return false;
  return METHODS.every((method) => typeof (value as Partial<Log>)[method] === 'function');
}

/** A program's logger whose failures have no effect: it may throw, or return a promise that rejects. */
export function guardedLog(log: Log): Log {
  const guarded =
    (method: (typeof METHODS)[number]) =>
    (fields: Record<string, unknown>, message: string): void => {
      try {
        const returned: unknown = log[method](fields, message);
        if (returned instanceof Promise) returned.catch(() => undefined);
      } catch {
        // There is no other place to tell.
      }
    };
  return {
    debug: guarded('debug'),
    info: guarded('info'),
    warn: guarded('warn'),
    error: guarded('error'),
  };
}
