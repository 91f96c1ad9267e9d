import { describe, expect, it } from 'vitest';
import { bucketOfOrigin, isOriginBucket, isOriginName, ORIGIN_BUCKETS, originOfUrl } from './origin.js';

describe('the origin of a URL', () => {
  it('is its scheme, host and port, whatever else stands in it', () => {
    expect(originOfUrl('https://user:secret@Example.COM:443/path?query#part')).toBe('https://example.com');
    expect(originOfUrl('http://example.com:8080/a')).toBe('http://example.com:8080');
    expect(originOfUrl('http://[::1]:80/')).toBe('http://[::1]');
    expect(originOfUrl('no url')).toBe('');
  });

  it('is named by itself, or by the bucket that it is in', () => {
    for (const name of ['https://example.com', 'http://localhost:8080', 'bucket:0', 'bucket:63'])
      expect(isOriginName(name), name).toBe(true);
    const others = [
      'https://example.com/',
      'https://example.com:443',
      'example.com',
      'bucket:64',
      'bucket:017',
    ];
    for (const name of [...others, 'ftp://example.com', 'https://a@example.com', ''])
      expect(isOriginName(name), name).toBe(false);
  });
});

it('many origins fill all buckets about evenly', () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 6_400; i++) {
    const bucket = bucketOfOrigin(`https://host-${i}.example.com`);
    expect(isOriginBucket(bucket)).toBe(true);
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
  }
  expect(counts.size).toBe(ORIGIN_BUCKETS);
  expect(Math.max(...counts.values())).toBeLessThan(200);
});
