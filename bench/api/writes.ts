import { Pool } from 'undici';
import type { Connection } from '../../src/kube/access.ts';
import { type Rate, rateOf } from './measure.ts';
import { NAMESPACE, secret } from './secret.ts';

/** Creates Secrets over HTTPS, one connection a writer. */
export function writeToApi({ server, tls }: Connection, writers: number, forMs: number): Promise<Rate> {
  const connect = { ca: tls.ca, cert: tls.certificate, key: tls.key };
  const pool = new Pool(server.origin, { connections: writers, connect, allowH2: false });
  const path = `/api/v1/namespaces/${NAMESPACE}/secrets`;
  return writing(pool, writers, forMs, path, 201, name => JSON.stringify(secret(name)));
}

/** Puts the same Secrets under new keys over etcd's JSON gateway, which speaks plain HTTP here: that is in its favour. */
export function writeToEtcd(url: string, writers: number, forMs: number): Promise<Rate> {
  const pool = new Pool(url, { connections: writers });
  return writing(pool, writers, forMs, '/v3/kv/put', 200, name => {
    const key = Buffer.from(`/registry/secrets/${NAMESPACE}/${name}`).toString('base64');
    return JSON.stringify({ key, value: Buffer.from(JSON.stringify(secret(name))).toString('base64') });
  });
}

/** Every write is to a name of its own. */
let count = 0;

async function writing(
  pool: Pool,
  writers: number,
  forMs: number,
  path: string,
  expected: number,
  bodyOf: (name: string) => string,
): Promise<Rate> {
  const headers = { 'content-type': 'application/json' };
  try {
    return await rateOf(writers, forMs, async () => {
      const body = bodyOf(`over-http-${count++}`);
      const answer = await pool.request({ method: 'POST', path, headers, body });
      await answer.body.dump();
      if (answer.statusCode !== expected) throw new Error(`expected ${expected}, found ${answer.statusCode}`);
    });
  } finally {
    await pool.destroy();
  }
}
