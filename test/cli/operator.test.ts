import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { load } from 'js-yaml';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { type Api, startApi } from '../../src/api/api.ts';
import { loadSecret } from '../../src/certrotation/secret.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, type KubeObject, LEASES, resource, SECRETS } from '../../src/kube/resource.ts';
import { keyAlgorithmOf } from '../../src/pki/keys.ts';
import { end } from '../tools/child.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;
const main = join(root, 'src/cli/main.ts');
const OPERATORS = resource<KubeObject & { status?: { conditions?: { type: string; status: string }[] } }>(
  'operator.openshift.io/v1',
  'KubeAPIServer',
  'kubeapiservers',
  false,
);
const OPERATOR = 'openshift-kube-apiserver-operator';

describe('rotunda kube-apiserver-operator', () => {
  let api: Api;
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-operator-'));
  const children: ChildProcess[] = [];
  before(async () => {
    api = await startApi({ dir });
    const folder = join(root, 'manifests/crds');
    for (const file of readdirSync(folder).filter(name => /^(?:config|operator|controlplane)\..*\.yaml$/.test(name))) {
      await api.kube.create(
        CUSTOM_RESOURCE_DEFINITIONS,
        load(readFileSync(join(folder, file), 'utf8')) as CustomResourceDefinition,
      );
    }
  });
  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  test('one of two leads and makes the chains; told to stop, both end cleanly and the lease is free', async () => {
    const [first, second] = [start(), start()];
    await eventually('the signers', async () => (await signers()).length === 8);
    await eventually('a holder', async () => (await lease())?.spec?.holderIdentity || undefined);
    const condition = (type: string) => async () => {
      const operator = await api.kube.get(OPERATORS, { name: 'cluster' });
      return operator.status?.conditions?.find(found => found.type === type)?.status;
    };
    await eventually(
      'the condition',
      async () => (await condition('CertRotation_LocalhostServing_Degraded')()) === 'False',
    );
    // Network and Infrastructure are not there: that is said, and the other chains go on.
    await eventually('the complaint', async () => (await condition('CertRotationHostnamesDegraded')()) === 'True');
    // The version comes from the tag of the image; there are no nodes whose kubelets could be too old for it.
    await eventually('the skew', async () => (await condition('KubeletMinorVersionUpgradeable')()) === 'True');

    for (const child of [first, second]) {
      assert.equal((await end(child)).code, 0);
    }
    assert.equal((await lease())?.spec?.holderIdentity ?? '', '');
  });

  test('what may be handed back one day has RSA keys; another algorithm is for whoever asks for it', async () => {
    for (const signer of await signers()) assert.equal(keyAlgorithmOf(loadSecret(signer).key), 'RSA-2048');
    const name = 'localhost-serving-signer';
    await api.kube.delete(SECRETS, { namespace: OPERATOR, name });
    const child = start('--key-algorithm', 'p-256');
    const made = await eventually('the new signer', async () =>
      (await signers()).find(({ metadata }) => metadata?.name === name),
    );
    assert.equal(keyAlgorithmOf(loadSecret(made).key), 'P-256');
    await end(child);
  });

  test('no key reaches the log', () => {
    assert.doesNotMatch(output, /PRIVATE KEY|"tls\.key"/);
  });

  const bad: [string, string[], RegExp][] = [
    ['a kubeconfig that is not there', ['--kubeconfig', '/does/not/exist'], /error: .*\/does\/not\/exist/],
    ['a rotation day of a week', ['--rotation-day', '168h'], /error: --rotation-day must be a duration from 1s to 24h/],
    [
      'keys that no token can be signed with',
      ['--key-algorithm', 'Ed25519'],
      /--key-algorithm must be one of RSA-2048, /,
    ],
    ['an unknown flavor', ['--flavor', 'vanilla'], /error: --flavor must be kubernetes or openshift/],
    ['an address without a port', ['--listen', 'localhost'], /error: --listen must be <address>:<port>/],
  ];
  for (const [what, args, message] of bad) {
    test(`${what}: one clear line and exit code 1`, () => {
      const { status, stderr } = spawnSync(process.execPath, [main, 'kube-apiserver-operator', ...args], {
        encoding: 'utf8',
        timeout: PATIENCE_MS,
      });
      assert.equal(status, 1, stderr);
      assert.match(stderr, message);
    });
  }

  let output = '';
  function start(...more: string[]): ChildProcess {
    const flags = ['--kubeconfig', join(dir, 'kubeconfig'), '--image', 'kube-apiserver:v1.33.0', ...more];
    const child = spawn(process.execPath, [main, 'kube-apiserver-operator', ...flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    children.push(child);
    return child;
  }

  async function signers() {
    const labelSelector = 'auth.openshift.io/managed-certificate-type=signer';
    return (await api.kube.list(SECRETS, { namespace: OPERATOR, labelSelector })).items;
  }

  function lease() {
    return api.kube.get(LEASES, { namespace: OPERATOR, name: 'kube-apiserver-operator-lock' }).catch(() => undefined);
  }
});
