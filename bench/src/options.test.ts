import { describe, expect, it } from 'vitest';
import { helpText, parseOptions, UsageError } from './options.js';
import { SCENARIOS } from './scenarios/index.js';

const parse = (...args: string[]) => parseOptions(args, SCENARIOS);
const namesOf = (...args: string[]) => parse(...args).scenarios.map(({ name }) => name);

describe('the command line of the bench', () => {
  it('runs everything with every peer unless told otherwise', () => {
    expect(parse()).toMatchObject({ full: true, seconds: null, json: false, profile: null });
    expect(namesOf()).toEqual(namesOf('--scenario', 'all'));
    expect(parse().peers).toEqual(['graphile-worker', 'pg-boss', 'bullmq']);
  });

  it('takes several scenarios, by commas and by repetition', () => {
    expect(namesOf('--scenario', 'wire,latency', '--scenario', 'idle')).toEqual(['wire', 'latency', 'idle']);
  });

  it('takes some peers or none', () => {
    expect(parse('--peers', 'bullmq,graphile-worker').peers).toEqual(['graphile-worker', 'bullmq']);
    expect(parse('--peers', 'none').peers).toEqual([]);
  });

  it('leaves quotas out unless they are asked for', () => {
    expect([parse().quotas, parse('--quotas').quotas]).toEqual([false, true]);
  });

  it.each([
    [['--scenario', 'speed'], /There is no scenario "speed"\. There are: sustained, /],
    [['--seconds', 'ten'], /--seconds must be a whole number/],
    [['--seconds', '1.5'], /--seconds must be a whole number/],
    [['--peers', 'cron'], /There is no peer "cron"\. There are: graphile-worker, /],
    [['--fast'], /--fast.*\nSee --help/s],
  ])('says what is wrong with %j', (args, message) => {
    expect(() => parse(...args)).toThrow(UsageError);
    expect(() => parse(...args)).toThrow(message);
  });

  it('tells of every scenario in the help', () => {
    for (const { name, title } of SCENARIOS)
      expect(helpText(SCENARIOS)).toContain(`${name.padEnd(11)}  ${title}`);
  });
});
