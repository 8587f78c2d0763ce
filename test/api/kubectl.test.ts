/** Drives the real `kubectl` against the embedded API: what a newcomer does first must work as on any cluster. */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Api, startApi } from '../../src/api/api.ts';
import { NODES, PODS } from '../../src/kube/resource.ts';
import { eventually, inTime, PATIENCE_MS } from '../tools/eventually.ts';
import { findKubectl } from '../tools/kubectl.ts';

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function call(
  program: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<Result> {
  return new Promise(resolve => {
    const env = { ...process.env, ...options.env };
    const child = execFile(program, args, { env, timeout: PATIENCE_MS }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, out, err });
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
  });
}

const found = await findKubectl();
const kubectl = 'program' in found ? found.program : undefined;
const skip = 'missing' in found ? found.missing : false;

describe('kubectl', { skip, timeout: 2 * PATIENCE_MS }, () => {
  let dir: string;
  let api: Api;
  let environment: NodeJS.ProcessEnv;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-kubectl-'));
    api = await startApi({ dir: join(dir, 'api') });
    environment = { KUBECONFIG: api.kubeconfigPath, HOME: dir, KUBECACHEDIR: join(dir, 'cache') };
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, name), text);
    await run('create', 'namespace', 'shop');
  });
  after(async () => {
    await api?.close();
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
  });

  /** What kubectl printed; fails unless it was content. */
  async function run(...args: string[]): Promise<string> {
    const { code, out, err } = await call(kubectl as string, args, { env: environment });
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${err}`);
    return out;
  }
  const shop = (...args: string[]) => run('-n', 'shop', ...args);
  const file = (name: string) => join(dir, name);

  /** What kubectl complained about. */
  async function complaint(...args: string[]): Promise<string> {
    const { code, err } = await call(kubectl as string, args, { env: environment });
    assert.notEqual(code, 0, `kubectl ${args.join(' ')} should have failed`);
    return err;
  }

  it('creates, gets and describes', async () => {
    await shop('create', 'configmap', 'settings', '--from-literal=color=red');
    await shop('create', 'secret', 'generic', 'password', '--from-literal=word=open');
    assert.match(await shop('get', 'configmap', 'settings'), /NAME +DATA +AGE\nsettings +1/);
    assert.equal(await shop('get', 'cm', 'settings', '-o', 'jsonpath={.data.color}'), 'red');
    assert.match(await shop('get', 'cm', 'settings', '-o', 'yaml'), /^ {2}color: red$/m);
    assert.match(await shop('describe', 'configmap', 'settings'), /color:\n----\nred/);
    assert.match(await run('get', 'secrets', '-A', '-o', 'wide'), /shop +password +Opaque +1/);
    assert.match(
      await complaint('-n', 'shop', 'create', 'configmap', 'settings'),
      /configmaps "settings" already exists/,
    );
    assert.match(
      await complaint('-n', 'shop', 'get', 'cm', 'nothing'),
      /Error from server \(NotFound\): configmaps "nothing" not found/,
    );
  });

  it('applies, on the client and on the server', async () => {
    assert.match(await shop('apply', '-f', file('app.yaml')), /deployment.apps\/web created\nservice\/web created/);
    assert.match(await shop('apply', '-f', file('app.yaml')), /deployment.apps\/web unchanged\nservice\/web unchanged/);
    assert.match(
      await shop('apply', '-f', file('app-2.yaml'), '--dry-run=server'),
      /web configured \(server dry run\)/,
    );
    assert.equal(
      await shop('get', 'deploy', 'web', '-o', 'jsonpath={.spec.template.spec.containers[0].image}'),
      'nginx:1',
    );
    assert.match(
      (await call(kubectl as string, ['-n', 'shop', 'diff', '-f', file('app-2.yaml')], { env: environment })).out,
      /\+ +- image: nginx:2|\+ +image: nginx:2/,
    );
    assert.match(await shop('apply', '-f', file('app-2.yaml')), /deployment.apps\/web configured/);
    const conflict = await complaint(
      '-n',
      'shop',
      'apply',
      '--server-side',
      '--field-manager=robot',
      '-f',
      file('app.yaml'),
    );
    assert.match(conflict, /Apply failed with 1 conflict: conflict with "kubectl-client-side-apply"/);
    await shop('apply', '--server-side', '--field-manager=robot', '--force-conflicts', '-f', file('app.yaml'));
    const managers = await shop(
      'get',
      'deploy',
      'web',
      '--show-managed-fields',
      '-o',
      'jsonpath={.metadata.managedFields[*].manager}',
    );
    assert.match(managers, /robot/);
    assert.match(await shop('get', 'deployments,services'), /deployment.apps\/web +0\/2/);
  });

  it('patches, edits, labels, annotates and scales', async () => {
    const image = () => shop('get', 'deploy', 'web', '-o', 'jsonpath={.spec.template.spec.containers[0].image}');
    await shop(
      'patch',
      'deploy',
      'web',
      '-p',
      '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:3"}]}}}}',
    );
    assert.equal(await image(), 'nginx:3');
    await shop('patch', 'deploy', 'web', '--type=merge', '-p', '{"spec":{"paused":true}}');
    await shop(
      'patch',
      'deploy',
      'web',
      '--type=json',
      '-p',
      '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:4"}]',
    );
    assert.equal(await image(), 'nginx:4');
    const edited = await call(kubectl as string, ['-n', 'shop', 'edit', 'deploy', 'web'], {
      env: { ...environment, KUBE_EDITOR: 'sed -i s/nginx:4/nginx:5/' },
    });
    assert.equal(edited.code, 0, edited.err);
    assert.equal(await image(), 'nginx:5');
    await shop('label', 'deploy', 'web', 'tier=front');
    await shop('annotate', 'deploy', 'web', 'note=well');
    await shop('scale', 'deploy', 'web', '--replicas=5');
    assert.match(await shop('get', 'deploy', '-l', 'tier=front', '-o', 'name'), /deployment.apps\/web/);
    assert.equal(
      await shop('get', 'deploy', 'web', '-o', 'jsonpath={.spec.replicas} {.metadata.annotations.note}'),
      '5 well',
    );
    assert.match(
      await complaint('-n', 'shop', 'patch', 'deploy', 'web', '-p', '{"spec":{"replicas":-1}}'),
      /spec.replicas: Invalid value: -1: must be greater than or equal to 0/,
    );
  });

  it('watches and waits', async () => {
    const seen: string[] = [];
    const watcher = spawn(kubectl as string, ['-n', 'shop', 'get', 'cm', '-w', '--output-watch-events'], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const deleted = new Promise<void>(resolve => {
        watcher.stdout.setEncoding('utf8').on('data', (text: string) => {
          seen.push(text);
          if (/DELETED +watched/.test(seen.join(''))) resolve();
        });
      });
      // It has begun to watch when the server knows of it.
      await eventually('a watch', () => api.watches() > 0);
      await shop('create', 'configmap', 'watched');
      await shop('label', 'configmap', 'watched', 'a=b');
      const waiting = shop('wait', '--for=delete', 'configmap/watched', '--timeout=10m');
      await eventually('a second watch', () => api.watches() > 1);
      await shop('delete', 'configmap', 'watched');
      await inTime('the end of what was watched', Promise.all([deleted, waiting]));
    } finally {
      watcher.kill();
    }
    assert.match(seen.join(''), /ADDED +watched [^]*MODIFIED +watched [^]*DELETED +watched /);
  });

  it('serves definitions as if they were built in', async () => {
    assert.match(await run('apply', '-f', file('definition.yaml')), /widgets.example.com created/);
    await run('wait', '--for=condition=Established', 'crd/widgets.example.com', '--timeout=10m');
    await shop('apply', '-f', file('widget.yaml'));
    assert.match(await shop('get', 'wd'), /NAME +SIZE +AGE\nlarge +3 /);
    assert.match(await run('api-resources', '--api-group=example.com'), /widgets +wd +example.com\/v1 +true +Widget/);
    assert.match(await run('explain', 'widget.spec'), /size\s+<integer> -required-\s+How large it is\./);
    assert.match(
      await complaint('-n', 'shop', 'patch', 'wd', 'large', '--type=merge', '-p', '{"spec":{"size":30}}'),
      /spec.size: Invalid value: 30: spec.size in body should be less than or equal to 10/,
    );
    await shop('patch', 'wd', 'large', '--subresource=status', '--type=merge', '-p', '{"status":{"phase":"Done"}}');
    await shop('wait', '--for=jsonpath={.status.phase}=Done', 'wd/large', '--timeout=10m');
    const strict = await call(kubectl as string, ['-n', 'shop', 'create', '-f', '-'], {
      env: environment,
      input: 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: odd}\nspec: {size: 1, nonsense: true}\n',
    });
    assert.match(strict.err, /strict decoding error: unknown field "spec.nonsense"/);
    await run('delete', 'crd', 'widgets.example.com');
  });

  it('explains and lists what there is', async () => {
    assert.match(await run('explain', 'pod.spec.containers.image'), /FIELD: image <string>/);
    assert.match(await run('api-resources'), /deployments +deploy +apps\/v1 +true +Deployment/);
    assert.match(await run('version'), /Server Version: v1\.\d+/);
    assert.match(await run('get', '--raw', '/readyz'), /ok/);
  });

  it('asks who may do what', async () => {
    assert.equal(await run('auth', 'can-i', 'create', 'pods'), 'yes\n');
    await shop('create', 'serviceaccount', 'robot');
    await shop('create', 'role', 'reader', '--verb=get,list', '--resource=configmaps');
    await shop('create', 'rolebinding', 'robot', '--role=reader', '--serviceaccount=shop:robot');
    const as = '--as=system:serviceaccount:shop:robot';
    assert.equal(await shop('auth', 'can-i', 'list', 'configmaps', as), 'yes\n');
    assert.match(
      await complaint('-n', 'shop', 'get', 'secrets', as),
      /User "system:serviceaccount:shop:robot" cannot list resource "secrets"/,
    );
    const token = (await shop('create', 'token', 'robot')).trim();
    const reader = `--token=${token}`;
    const anonymous = join(dir, 'anonymous');
    const { KUBECONFIG: _, ...rest } = environment;
    const ca = join(dir, 'api', 'pki', 'serving-ca.crt');
    const listed = await call(
      kubectl as string,
      ['-n', 'shop', 'get', 'cm', '-o', 'name', reader, `--server=${api.url}`, `--certificate-authority=${ca}`],
      {
        env: { ...rest, KUBECONFIG: anonymous },
      },
    );
    assert.match(listed.out, /configmap\/settings/, listed.err);
    assert.match(await run('auth', 'whoami'), /system:admin/);
  });

  it('cordons, drains and uncordons', async () => {
    await api.kube.create(NODES, { metadata: { name: 'n1' } });
    const pod = await api.kube.create(PODS, {
      metadata: { name: 'tenant', namespace: 'shop', labels: { app: 'tenant' } },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    });
    await api.kube.updateStatus(PODS, {
      ...pod,
      status: { ...pod.status, phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await shop('create', 'poddisruptionbudget', 'tenant', '--selector=app=tenant', '--min-available=1');
    await api.engine.idle();
    await run('cordon', 'n1');
    assert.match(await run('get', 'node', 'n1'), /SchedulingDisabled/);
    const drain = ['drain', 'n1', '--force', '--ignore-daemonsets'];
    const refused = execFile(kubectl as string, drain, { env: { ...process.env, ...environment } }, () => {});
    let said = '';
    for await (const part of refused.stderr ?? []) {
      said += String(part);
      if (said.includes("Cannot evict pod as it would violate the pod's disruption budget")) break;
    }
    refused.kill();
    assert.match(said, /Cannot evict pod as it would violate the pod's disruption budget/);
    await shop('delete', 'pdb', 'tenant');
    // A node would end the pod; here the test does, once its deletion has begun.
    const drained = run(...drain, '--timeout=10m');
    for await (const { object } of api.kube.watch(PODS, { namespace: 'shop', fieldSelector: 'metadata.name=tenant' })) {
      if (object.metadata?.deletionTimestamp === undefined) continue;
      await api.kube.delete(PODS, { name: 'tenant', namespace: 'shop' }, { gracePeriodSeconds: 0 });
      break;
    }
    assert.match(await drained, /node\/n1 drained/);
    await run('uncordon', 'n1');
    assert.doesNotMatch(await run('get', 'node', 'n1'), /SchedulingDisabled/);
  });

  it('deletes, namespaces included', async () => {
    assert.match(await shop('delete', 'deploy,svc', '--all'), /deployment.apps "web" deleted\nservice "web" deleted/);
    await run('delete', 'namespace', 'shop', '--timeout=10m');
    assert.match(await complaint('get', 'namespace', 'shop'), /namespaces "shop" not found/);
    assert.match(await complaint('delete', 'namespace', 'default'), /this namespace may not be deleted/);
  });
});

const APP = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`;

const FILES: Readonly<Record<string, string>> = {
  'app.yaml': APP,
  'app-2.yaml': APP.replace('nginx:1', 'nginx:2'),
  'definition.yaml': `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 10, description: How large it is.}
          status:
            type: object
            properties:
              phase: {type: string}
`,
  'widget.yaml': 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: large}\nspec: {size: 3}\n',
};
