import { PunctualError } from '../errors.js';

/** The fields of a cron expression, as people call them. */
export type CronField = 'second' | 'minute' | 'hour' | 'day of month' | 'month' | 'day of week';

/** A schedule that cannot be: an expression or a zone that is wrong, and which part of it. */
export class ScheduleError extends PunctualError {
  /** The field of the expression that is wrong, when it is one of them. */
  readonly field: CronField | undefined;

  constructor(pointer: '/cron' | '/timezone', reason: string, field?: CronField) {
    const detail = field === undefined ? reason : `${field}: ${reason}`;
    super('INVALID_REQUEST', `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
    this.name = 'ScheduleError';
    this.field = field;
  }
}
