import { expect, it } from 'vitest';
import { type AwsRequest, NO_PAYLOAD, signedHeaders, signedQuery } from './aws-signature.js';

/** The examples that AWS publishes for Signature Version 4 of S3, with their keys. */
const CREDENTIALS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const NOW = Date.parse('2013-05-24T00:00:00Z');
const host = 'examplebucket.s3.amazonaws.com';

const request = (method: string, path: string, parts: Partial<AwsRequest> = {}): AwsRequest => ({
  ...{ method, host, path, query: {}, headers: {}, ...parts },
});

it.each<[string, AwsRequest, string, string, string]>([
  [
    'a range of an object',
    request('GET', '/test.txt', { headers: { range: 'bytes=0-9' } }),
    NO_PAYLOAD,
    'host;range;x-amz-content-sha256;x-amz-date',
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'an upload with a sign in its name',
    request('PUT', '/test$file.text', {
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
    }),
    '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'a query without a value',
    request('GET', '/', { query: { lifecycle: '' } }),
    NO_PAYLOAD,
    'host;x-amz-content-sha256;x-amz-date',
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'a query with values',
    request('GET', '/', { query: { prefix: 'J', 'max-keys': '2' } }),
    NO_PAYLOAD,
    'host;x-amz-content-sha256;x-amz-date',
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
])('signs %s as published', (_, asked, hash, names, signature) => {
  const { authorization } = signedHeaders(CREDENTIALS, asked, hash, NOW);
  expect(authorization).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
      `SignedHeaders=${names}, Signature=${signature}`,
  );
});

it('signs an address as published', () => {
  expect(signedQuery(CREDENTIALS, request('GET', '/test.txt'), 86_400_000, NOW)).toBe(
    'X-Amz-Algorithm=AWS4-HMAC-SHA256' +
      '&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
      '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
      '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  );
});
