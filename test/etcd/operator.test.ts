/** `rotunda etcd-operator` as a process of its own, against an API without any node. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { load } from 'js-yaml';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { type Api, startApi } from '../../src/api/api.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../src/kube/resource.ts';
import { end } from '../tools/child.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;
const main = join(root, 'src/cli/main.ts');

describe('rotunda etcd-operator', () => {
  let api: Api;
  let child: ChildProcess | undefined;
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-etcd-operator-'));
  before(async () => {
    api = await startApi({ dir });
    const folder = join(root, 'manifests/crds');
    for (const file of readdirSync(folder).filter(name => /^(?:config|operator)\..*\.yaml$/.test(name))) {
      await api.kube.create(
        CUSTOM_RESOURCE_DEFINITIONS,
        load(readFileSync(join(folder, file), 'utf8')) as CustomResourceDefinition,
      );
    }
  });
  after(async () => {
    child?.kill('SIGKILL');
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  for (const layout of ['later', '4.16']) {
    test(`layout ${layout}: whoever runs it learns from /livez when a controller hangs (A-5)`, async () => {
      let output = '';
      const started = spawn(
        process.execPath,
        [main, 'etcd-operator', '--kubeconfig', join(dir, 'kubeconfig'), '--listen', '127.0.0.1:0', '--layout', layout],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      child = started;
      started.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      const url = await eventually('the address', async () => /"url":"([^"]+)"/.exec(output)?.[1]);
      await eventually('the check', async () => {
        const text = await (await fetch(`${url}/livez?verbose`)).text();
        return text.includes('[+]controller-aliveness ok');
      });
      assert.equal((await end(started)).code, 0);
      assert.doesNotMatch(output, /PRIVATE KEY|"tls\.key"/);
    });
  }

  test('an unknown layout is one clear line and no start', () => {
    const { status, stderr } = spawnSync(process.execPath, [main, 'etcd-operator', '--layout', '4.15'], {
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.ok(status, stderr);
    assert.match(stderr, /^error: --layout must be 4\.16 or later, found "4\.15"\n*$/);
  });
});
