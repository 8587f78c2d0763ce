/** Bodies of some size over HTTP/1.1 and TLS, one after the other on one connection: every one gets its answer. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type Api, startApi } from '../../src/api/api.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';

const run = promisify(execFile);
/** Four to fourteen of a hundred were lost once. */
const REQUESTS = 120;
const SIZES = [70_000, 100_000, 150_000];
/** Only for a client that waits for an answer that never comes. */
const CLIENT_TIMEOUT_MS = 120_000;
/** The answer holds what was sent: it is still on its way to the system when the next request comes. */
const PATH = '/api/v1/namespaces/default/configmaps';
const JSON_TYPE = 'application/json';

describe('bodies over HTTP/1.1', () => {
  let dir: string;
  let api: Api;
  let neighbour: Promise<void>;
  let isOver = false;
  let login: { ca: string; cert: string; key: string };

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-http1-'));
    api = await startApi({ dir: join(dir, 'api') });
    const { tls } = await (await loadAccess({ path: api.kubeconfigPath })).connection();
    login = { ca: tls.ca ?? '', cert: tls.certificate ?? '', key: tls.key ?? '' };
    for (const [name, text] of Object.entries(login)) writeFileSync(join(dir, name), text, { mode: 0o600 });
    for (const size of SIZES) writeFileSync(join(dir, `body-${size}`), bodyOf(size));
    neighbour = writeOn();
  });
  after(async () => {
    isOver = true;
    await neighbour;
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** Keeps the server busy between an answer and the next request, as a cluster does. */
  async function writeOn(): Promise<void> {
    const key = { name: 'kube-root-ca.crt', namespace: 'default' };
    for (let count = 0; !isOver; count++) {
      const body = { metadata: { annotations: { count: String(count) } } };
      await api.kube.patch(CONFIG_MAPS, key, { type: 'merge', body });
      await new Promise(resolve => setImmediate(resolve));
    }
  }

  it('are answered to an agent of Node that keeps its connection', async () => {
    assert.equal(await answersTo(process.execPath, '-e', NODE), JSON.stringify({ 201: REQUESTS }));
  });

  it('are answered to the client of Python', async t => {
    if (spawnSync('python3', ['-c', 'import ssl']).status !== 0) return t.skip('there is no python3');
    assert.equal(await answersTo('python3', '-c', PYTHON), `{201: ${REQUESTS}}`);
  });

  /** What a client prints that posts over one connection: how often it got which answer. */
  async function answersTo(program: string, ...script: readonly string[]): Promise<string> {
    const args = [...script, new URL(api.url).port, String(REQUESTS), PATH, ...SIZES.map(String)];
    const { stdout } = await run(program, args, { cwd: dir, timeout: CLIENT_TIMEOUT_MS });
    return stdout.trim();
  }

  it('are answered to curl', async t => {
    if (spawnSync('curl', ['--version']).status !== 0) return t.skip('there is no curl');
    for (const size of SIZES) {
      const each = Math.ceil(REQUESTS / SIZES.length);
      // The brackets repeat the request, on one connection.
      const url = `${api.url}${PATH}?fieldManager=n[1-${each}]`;
      const args = [
        '--silent',
        '--show-error',
        '--fail',
        '--http1.1',
        '--cacert',
        'ca',
        '--cert',
        'cert',
        '--key',
        'key',
      ];
      const body = ['--header', `content-type: ${JSON_TYPE}`, '--data-binary', `@body-${size}`];
      const format = ['--output', 'answer', '--write-out', '%{http_code} %{num_connects}\n'];
      const { stdout } = await run('curl', [...args, ...body, ...format, url], {
        cwd: dir,
        timeout: CLIENT_TIMEOUT_MS,
      });
      const answers = stdout.trim().split('\n');
      assert.deepEqual(answers, ['201 1', ...Array.from({ length: each - 1 }, () => '201 0')]);
    }
  });
});

function bodyOf(size: number): string {
  const metadata = { generateName: 'large-', namespace: 'default' };
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { large: 'x'.repeat(size) } });
}

const NODE = `
const { readFileSync } = require('node:fs');
const { Agent, request } = require('node:https');
const [port, count, path, ...sizes] = process.argv.slice(1);
const [ca, cert, key] = ['ca', 'cert', 'key'].map(name => readFileSync(name));
const agent = new Agent({ ca, cert, key, keepAlive: true, maxSockets: 1 });
const bodies = sizes.map(size => readFileSync('body-' + size));
const answers = {};
const post = body => new Promise((resolve, reject) => {
  const headers = { 'content-type': '${JSON_TYPE}', 'content-length': body.length };
  const sent = request({ host: '127.0.0.1', port, path, agent, method: 'POST', headers }, response => {
    answers[response.statusCode] = (answers[response.statusCode] ?? 0) + 1;
    response.resume().on('end', resolve).on('error', reject);
  });
  sent.on('error', reject).end(body);
});
(async () => {
  for (let index = 0; index < count; index++) await post(bodies[index % bodies.length]);
  console.log(JSON.stringify(answers));
  agent.destroy();
})();
`;

const PYTHON = `
import http.client, ssl, sys
port, count, path, sizes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
context = ssl.create_default_context(cafile='ca')
context.load_cert_chain('cert', 'key')
bodies = [open('body-' + size, 'rb').read() for size in sizes]
connection = http.client.HTTPSConnection('127.0.0.1', port, context=context)
answers = {}
for index in range(count):
    connection.request('POST', path, bodies[index % len(bodies)], {'Content-Type': '${JSON_TYPE}'})
    answer = connection.getresponse()
    answer.read()
    answers[answer.status] = answers.get(answer.status, 0) + 1
print(answers)
`;
