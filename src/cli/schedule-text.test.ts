import { expect, it } from 'vitest';
import { cliUnderTest } from '../../test/cli-under-test.js';
import type { ScheduleView } from '../core/wire.js';
import { Output } from './output.js';
import { scheduleDetails, scheduleTable } from './schedule-text.js';

const VIEW: ScheduleView = {
  ...{ id: '1', tenant: 'a', name: 'ping', every: '1h', paused: true, nextAt: null, managedBy: null },
  target: { type: 'http', url: 'https://a.example/hook', method: 'PUT' },
  ...{ lastAt: null, lastJobId: null, version: 2 },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', createdBy: 'ada' },
  ...{ changedAt: '2026-01-02T00:00:00.000Z', changedBy: 'system' },
};

it('a schedule says which URL it calls, and that it was paused because that is gone', () => {
  const output = new Output(cliUnderTest().cli, {});
  const now = Date.parse(VIEW.changedAt);
  expect(scheduleTable(output, [VIEW], now)).toMatch(
    /ping +paused \(gone\) .* PUT https:\/\/a\.example\/hook /,
  );
  expect(scheduleDetails(output, VIEW)).toMatch(/^why +its URL answered 410: correct it/m);
  const byAda = { ...VIEW, changedBy: 'ada' };
  expect(scheduleTable(output, [byAda], now)).not.toContain('gone');
  expect(scheduleDetails(output, byAda)).not.toMatch(/^why /m);
});
