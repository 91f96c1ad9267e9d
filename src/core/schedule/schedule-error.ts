import { PunctualError } from '../errors.js';

/** The name of a field of a cron expression. */
export type CronField = 'second' | 'minute' | 'hour' | 'day of month' | 'month' | 'day of week';

/** An expression or a time zone that is not valid. */
export class ScheduleError extends PunctualError {
  /** The field of the expression that is wrong, if it is a single one. */
  readonly field: CronField | undefined;

  constructor(pointer: '/cron' | '/timezone', reason: string, field?: CronField) {
    const detail = field === undefined ? reason : `${field}: ${reason}`;
    super('INVALID_REQUEST', `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
    this.name = 'ScheduleError';
    this.field = field;
  }
}
