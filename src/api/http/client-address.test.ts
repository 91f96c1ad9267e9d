import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { clientAddresses } from './client-address.js';

/** The address of a request from `peer` with these headers. */
function addressOf(
  trustedProxies: string,
  peer: string,
  headers: Record<string, string> = {},
): string | null {
  const markedAddress = (mark: string) => (mark === 'genuine' ? '203.0.113.9' : undefined);
  const of = clientAddresses({ trustedProxies, markedAddress });
  return of({ headers, socket: { remoteAddress: peer } } as unknown as FastifyRequest);
}

describe('where a request comes from', () => {
  it('is the other end of its connection, whatever its headers say', () => {
    expect(addressOf('', '198.51.100.7', { 'x-forwarded-for': '10.0.0.1' })).toBe('198.51.100.7');
    expect(addressOf('10.0.0.0/8', '198.51.100.7', { 'x-forwarded-for': '10.0.0.1' })).toBe('198.51.100.7');
    expect(addressOf('', '::ffff:198.51.100.7')).toBe('198.51.100.7');
  });

  it('is what a named proxy says, as far as the proxies before it are named too', () => {
    const from = (list: string) => addressOf('10.0.0.0/8, fd00::/8', '10.1.2.3', { 'x-forwarded-for': list });
    expect(from('198.51.100.7')).toBe('198.51.100.7');
    expect(from('1.1.1.1, 198.51.100.7, 10.9.9.9')).toBe('198.51.100.7');
    expect(from('2001:db8::1, fd00::5')).toBe('2001:db8::1');
    expect(from('10.4.4.4')).toBe('10.4.4.4');
  });

  it('stops at what is no address', () => {
    expect(addressOf('10.0.0.1', '10.0.0.1', { 'x-forwarded-for': '1.1.1.1, unknown' })).toBe('10.0.0.1');
    expect(addressOf('10.0.0.1', '10.0.0.1', { 'x-forwarded-for': '' })).toBe('10.0.0.1');
  });

  it('is what another node signed, and a mark that is not genuine does not count', () => {
    expect(addressOf('', '10.0.0.2', { 'punctual-forwarded': 'genuine' })).toBe('203.0.113.9');
    expect(addressOf('', '10.0.0.2', { 'punctual-forwarded': 'made up' })).toBe('10.0.0.2');
  });

  it.each(['10.0.0.0/33', 'proxy.example', '10.0.0.0/', '::1/129'])('refuses %s as a proxy', (setting) => {
    expect(() => addressOf(setting, '10.0.0.1')).toThrow('trustedProxies');
  });
});
