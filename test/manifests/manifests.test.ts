/** What `kubectl kustomize` makes of `manifests/`: complete, consistent, and no more than it needs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import type { PodSpec } from 'kubernetes-types/core/v1.d.ts';
import type { PolicyRule, RoleRef, Subject } from 'kubernetes-types/rbac/v1.d.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { KubeObject } from '../../src/kube/resource.ts';
import { VERSION } from '../../src/kube/version.ts';
import { MANIFESTS } from '../cluster/installed.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { findKubectl } from '../tools/kubectl.ts';

const kubectl = await findKubectl();
const program = buildProgram('rotunda');
const COMPONENTS =
  'crds namespaces inventory kube-apiserver-operator etcd-operator machine-config daemon monitoring'.split(' ');
/** Every cluster has them. */
const GIVEN_NAMESPACES = ['default', 'kube-system', 'kube-public'];
const GIVEN_ROLES = ['system:node-bootstrapper', 'system:image-puller'];
const WRITES = ['create', 'update', 'patch', 'delete', 'deletecollection', 'bind', 'escalate', 'impersonate', '*'];

interface Manifest extends KubeObject {
  readonly spec?: { readonly replicas?: number; readonly template?: { readonly spec: PodSpec } };
  readonly rules?: readonly PolicyRule[];
  readonly roleRef?: RoleRef;
  readonly subjects?: readonly Subject[];
}

describe('manifests', { skip: 'missing' in kubectl && kubectl.missing }, () => {
  const render = (folder: string): Manifest[] => {
    const tool = 'program' in kubectl ? kubectl.program : '';
    const text = execFileSync(tool, ['kustomize', folder], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      stdio: 'pipe',
      timeout: PATIENCE_MS,
    });
    return (loadAll(text) as Manifest[]).filter(Boolean);
  };
  const idOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata?.namespace ?? ''}/${metadata?.name}`;
  const all = 'missing' in kubectl ? [] : render(MANIFESTS);
  const workloads = all.filter(({ spec }) => spec?.template !== undefined);
  const named = (kind: string) => new Set(all.filter(each => each.kind === kind).map(idOf));

  test('the whole is the sum of its components, and every definition is listed', () => {
    const parts = COMPONENTS.flatMap(component => render(join(MANIFESTS, component)).map(idOf));
    assert.deepEqual(all.map(idOf).sort(), parts.sort());
    const files = readdirSync(join(MANIFESTS, 'crds')).filter(name => name.endsWith('.yaml'));
    assert.equal(render(join(MANIFESTS, 'crds')).length, files.length);
  });

  test('everything that is named is there: namespaces, roles, accounts', () => {
    const namespaces = new Set([
      ...GIVEN_NAMESPACES,
      ...all.filter(each => each.kind === 'Namespace').map(each => each.metadata?.name),
    ]);
    const accounts = named('ServiceAccount');
    for (const each of all) {
      const { namespace } = each.metadata ?? {};
      if (namespace !== undefined) assert.ok(namespaces.has(namespace), `${idOf(each)}: no such namespace`);
      if (each.roleRef !== undefined && !GIVEN_ROLES.includes(each.roleRef.name)) {
        const { kind, name } = each.roleRef;
        const role = `${kind} ${kind === 'Role' ? namespace : ''}/${name}`;
        assert.ok(named(kind).has(role), `${idOf(each)}: no ${role}`);
      }
      for (const { kind, namespace: place, name } of each.subjects ?? []) {
        // A user is known by its certificate only.
        if (kind !== 'User') assert.ok(accounts.has(`ServiceAccount ${place}/${name}`), `${idOf(each)}: ${name}`);
      }
    }
    for (const each of workloads) {
      const account = `ServiceAccount ${each.metadata?.namespace}/${each.spec?.template?.spec.serviceAccountName}`;
      assert.ok(accounts.has(account), `${idOf(each)}: no ${account}`);
    }
  });

  test('the account of nodes may pull from the internal registry (spec 50, 3.2, step 6)', () => {
    const roles = all.flatMap(({ roleRef, subjects = [] }) =>
      subjects.some(({ name }) => name === 'machine-os-puller') ? [roleRef?.name] : [],
    );
    assert.deepEqual(roles, ['system:image-puller']);
  });

  test('every container runs a command of this program, with flags that it knows, from the image of this version', () => {
    for (const each of workloads) {
      for (const { image, args = [] } of each.spec?.template?.spec.containers ?? []) {
        assert.equal(image, `rotunda:${VERSION}`, idOf(each));
        const command = program.commands.find(known => known.name() === args[0]);
        assert.ok(command, `${idOf(each)}: no command ${args[0]}`);
        for (const flag of args.slice(1).map(arg => arg.split('=')[0])) {
          assert.ok(
            command.options.some(({ long }) => long === flag),
            `${args[0]} has no ${flag}`,
          );
        }
      }
    }
  });

  test('health is asked where it is told', () => {
    for (const each of workloads) {
      for (const { args = [], livenessProbe, ports = [] } of each.spec?.template?.spec.containers ?? []) {
        const { port, path } = livenessProbe?.httpGet ?? { port: livenessProbe?.tcpSocket?.port };
        const asked = ports.find(({ name }) => name === port)?.containerPort ?? port;
        // The agent's health endpoint is where it is unless told otherwise.
        const told =
          args.some(arg => arg.endsWith(`:${asked}`) || arg === `--port=${asked}`) ||
          (asked === 8798 && path === '/health');
        assert.ok(told, `${idOf(each)}: probe at ${asked}`);
      }
    }
  });

  test('all but the agent run as nobody, without capabilities, on a read-only disk', () => {
    for (const each of workloads) {
      const { securityContext, containers, priorityClassName, hostPID } = each.spec?.template?.spec ?? {
        containers: [],
      };
      for (const { resources, securityContext: own } of containers) {
        assert.ok(resources?.requests?.cpu && resources.requests.memory, `${idOf(each)} requests nothing`);
        if (each.metadata?.name === 'machine-config-daemon') continue;
        assert.deepEqual(own, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        assert.equal(securityContext?.runAsNonRoot, true, idOf(each));
        assert.deepEqual(securityContext?.seccompProfile, { type: 'RuntimeDefault' });
        assert.equal(hostPID, undefined);
      }
      if (each.metadata?.namespace !== 'rotunda') assert.match(priorityClassName ?? '', /^system-/);
    }
  });

  test('inventory writes nothing, and no role is for everything', () => {
    const reading = render(join(MANIFESTS, 'inventory')).flatMap(({ rules = [] }) =>
      rules.flatMap(({ verbs }) => verbs),
    );
    assert.deepEqual(
      reading.filter(verb => WRITES.includes(verb)),
      [],
    );
    for (const each of all) {
      assert.notEqual(each.roleRef?.name, 'cluster-admin', idOf(each));
      for (const { apiGroups = [], resources = [], verbs } of each.rules ?? []) {
        assert.ok(![...apiGroups, ...resources, ...verbs].includes('*'), idOf(each));
      }
    }
  });

  test('a kustomization of your own chooses components and images', () => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-overlay-'));
    try {
      const at = (component: string) => relative(dir, join(MANIFESTS, component));
      const text = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'install.md'), 'utf8');
      const [, example = ''] = /```yaml\n# kustomization\.yaml\n([\s\S]*?)```/.exec(text) ?? [];
      assert.match(example, /manifests\/crds/, 'docs/install.md has no example');
      writeFileSync(
        join(dir, 'kustomization.yaml'),
        example.replaceAll(/\S*manifests\/([\w-]+)/g, (_, name: string) => at(name)),
      );
      const rendered = render(dir);
      const image = 'registry.example.com/rotunda:1.2.3';
      const chosen = rendered.filter(({ spec }) => spec?.template !== undefined);
      assert.ok(chosen.length > 0);
      for (const each of chosen) assert.equal(each.spec?.template?.spec.containers[0]?.image, image, idOf(each));
      assert.ok(chosen.length < workloads.length, 'everything was chosen');
      const operand = rendered.find(({ metadata }) => metadata?.name?.startsWith('operand-')) as Manifest & {
        data?: object;
      };
      assert.match(JSON.stringify(operand?.data), /example\.com\/kube-apiserver/);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
