import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverAddressOf } from './server-address.ts';

test('the server of a URL: no brackets, a port always, the name that was given or the host', () => {
  assert.deepEqual(serverAddressOf('https://api.example:6443'), {
    host: 'api.example',
    port: 6443,
    serverName: 'api.example',
  });
  assert.deepEqual(serverAddressOf('https://[fd00::1]'), { host: 'fd00::1', port: 443, serverName: 'fd00::1' });
  assert.deepEqual(serverAddressOf(new URL('https://10.0.0.1:6443/'), 'kubernetes')?.serverName, 'kubernetes');
  for (const other of ['http://10.0.0.1', 'no url', '']) assert.equal(serverAddressOf(other), undefined, other);
});
