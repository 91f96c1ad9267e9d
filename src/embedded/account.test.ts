import { describe, expect, it } from 'vitest';
import { candidateAccounts } from './account.js';

describe('the accounts that may run Postgres', () => {
  const passwd = [
    'root:x:0:0:root:/root:/bin/bash',
    '# a comment: as on some systems',
    'daemon:x:1:1::/usr/sbin:/usr/sbin/nologin',
    'nobody:x:-2:-2::/nonexistent:/usr/sbin/nologin',
    'postgres:x:101:104::/var/lib/postgresql:/bin/bash',
    'toor:x:0:0::/root:/bin/sh',
    'broken',
    '',
  ].join('\n');

  it('begin with the best, never hold root, and understand negative numbers', () => {
    expect(candidateAccounts(passwd)).toEqual([
      { name: 'postgres', uid: 101, gid: 104 },
      { name: 'nobody', uid: 4_294_967_294, gid: 4_294_967_294 },
      { name: 'daemon', uid: 1, gid: 1 },
    ]);
  });

  it('are none where there is nobody but root', () => {
    expect(candidateAccounts('root:x:0:0:root:/root:/bin/sh\n')).toEqual([]);
  });
});
