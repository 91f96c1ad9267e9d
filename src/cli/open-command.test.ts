import { expect, it } from 'vitest';
import { openerOf } from './open-command.js';

it('a browser is opened by the program of the desktop, and not where there is none', () => {
  expect(openerOf('darwin', {})).toEqual(['open']);
  expect(openerOf('win32', {})?.[0]).toBe('rundll32');
  expect(openerOf('linux', { DISPLAY: ':0' })).toEqual(['xdg-open']);
  expect(openerOf('linux', { WAYLAND_DISPLAY: 'wayland-0' })).toEqual(['xdg-open']);
  expect(openerOf('linux', {})).toBe(null);
});
