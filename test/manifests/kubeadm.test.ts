/** What adoption of a kubeadm cluster installs, as files for kustomize: the same objects, and no more rights than they need. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import type { DaemonSet, Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import { manifestFiles, yamlOf } from '../../src/cli/adopt/manifests.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { KubeObject } from '../../src/kube/resource.ts';
import { VERSION } from '../../src/kube/version.ts';
import { objectsOf, objectsToRemove } from '../../src/kubeadm/adopt/objects.ts';
import { CERTIFICATES_DIRECTORY } from '../../src/kubeadm/names.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { findKubectl } from '../tools/kubectl.ts';

const FOLDER = join(import.meta.dirname, '..', '..', 'manifests', 'kubeadm');
const kubectl = await findKubectl();
const IMAGE = 'registry.example.com/rotunda:1.2.3';
const install = (controlPlaneNodes: number, restartsPods = false, certificatesDirectory = CERTIFICATES_DIRECTORY) =>
  objectsOf({ image: IMAGE, controlPlaneNodes, certificatesDirectory, restartsPods });
const idOf = ({ kind, metadata }: KubeObject) => `${kind} ${metadata?.namespace ?? ''}/${metadata?.name}`;

test('manifests/kubeadm is what the code makes', () => {
  const files = manifestFiles();
  for (const [name, text] of files) {
    assert.equal(readFileSync(join(FOLDER, name), 'utf8'), text, `${name}: run node src/cli/adopt/manifests.ts`);
  }
  assert.deepEqual(
    readdirSync(FOLDER)
      .filter(name => name !== 'kustomization.yaml')
      .sort(),
    [...files.keys()].sort(),
  );
});

test('YAML with reasons is the same objects as without', () => {
  const objects = install(3, true);
  assert.deepEqual(
    loadAll(yamlOf(objects)),
    objects.map(({ object }) => object),
  );
});

describe('kustomize', { skip: 'missing' in kubectl && kubectl.missing }, () => {
  test('renders all of it with the image of this version', () => {
    const tool = 'program' in kubectl ? kubectl.program : '';
    const text = execFileSync(tool, ['kustomize', FOLDER], { encoding: 'utf8', stdio: 'pipe', timeout: PATIENCE_MS });
    const rendered = (loadAll(text) as KubeObject[]).filter(Boolean);
    assert.deepEqual(
      rendered.map(idOf).sort(),
      install(3)
        .map(({ object }) => idOf(object))
        .sort(),
    );
    const images = [...text.matchAll(/image: (\S+)/g)].map(([, image]) => image);
    assert.deepEqual(images, Array(3).fill(`rotunda:${VERSION}`));
  });
});

test('what is restrained is there before what it restrains', () => {
  const kinds = install(3).map(({ object }) => object.kind ?? '');
  const first = (kind: string) => kinds.indexOf(kind);
  assert.ok(first('Namespace') < first('ServiceAccount'));
  assert.ok(kinds.lastIndexOf('ValidatingAdmissionPolicyBinding') < first('DaemonSet'));
  assert.ok(kinds.lastIndexOf('ClusterRoleBinding') < first('DaemonSet'));
});

test('an operator for each control-plane node, three at most', () => {
  const replicas = [1, 2, 3, 5].map(count => {
    const { object } = install(count).find(({ object }) => object.kind === 'Deployment') ?? {};
    return (object as Deployment).spec?.replicas;
  });
  assert.deepEqual(replicas, [1, 2, 3, 3]);
});

test('every node has one agent, and every container the image that was asked for', () => {
  const sets = install(3)
    .map(({ object }) => object as DaemonSet)
    .filter(({ kind }) => kind === 'DaemonSet');
  const operators = sets.map(({ spec }) => {
    const { nodeSelectorTerms = [] } =
      spec?.template.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? {};
    return nodeSelectorTerms.flatMap(({ matchExpressions = [] }) => matchExpressions);
  });
  const key = 'node-role.kubernetes.io/control-plane';
  assert.deepEqual(operators, [[{ key, operator: 'Exists' }], [{ key, operator: 'DoesNotExist' }]]);
  for (const { spec } of sets) {
    assert.deepEqual(spec?.template.spec?.tolerations, [{ operator: 'Exists' }]);
    assert.deepEqual(
      spec?.template.spec?.containers.map(({ image }) => image),
      [IMAGE],
    );
  }
});

test('nobody may everything, write roles, or read keys without need', () => {
  const objects = install(3, true).map(({ object }) => object as KubeObject & { rules?: PolicyRule[] });
  for (const object of objects) {
    for (const { apiGroups = [], resources = [], verbs, resourceNames } of object.rules ?? []) {
      assert.ok(![...apiGroups, ...resources, ...verbs].includes('*'), idOf(object));
      assert.ok(!apiGroups.includes('rbac.authorization.k8s.io'), idOf(object));
      // Secrets only among our own, Nodes of agents by the policy.
      if (resources.includes('secrets')) assert.equal(object.metadata?.namespace, 'rotunda-pki', idOf(object));
      if (resources.includes('signers')) assert.equal(resourceNames?.length, 1);
    }
  }
  const reading = objects.filter(({ rules = [] }) => rules.some(({ resources = [] }) => resources.includes('secrets')));
  assert.deepEqual(reading.map(idOf).sort(), [
    'Role rotunda-pki/kubeadm-control-plane-agent',
    'Role rotunda-pki/kubeadm-operator',
  ]);
});

test('the right to restart workloads comes and goes with --pods restart', () => {
  const more = install(3, true).map(({ object }) => idOf(object));
  const less = install(3).map(({ object }) => idOf(object));
  const removed = objectsToRemove({ restartsPods: false }).map(({ object }) => idOf(object));
  assert.deepEqual(
    more.filter(id => !less.includes(id)),
    removed,
  );
  assert.equal(removed.length, 2);
  assert.deepEqual(objectsToRemove({ restartsPods: true }), []);
});

test('every container runs a command of this program, with flags that it knows', () => {
  const program = buildProgram('rotunda');
  const argsOf = (certificates?: string) =>
    install(3, false, certificates).flatMap(({ object }) =>
      ((object as Deployment).spec?.template?.spec?.containers ?? []).map(({ args = [] }) => args),
    );
  for (const args of [...argsOf(), ...argsOf('/srv/pki')]) {
    const command = program.commands.find(known => known.name() === args[0]);
    assert.ok(command, `no command ${args[0]}`);
    for (const flag of args.slice(1).map(arg => arg.split('=')[0]))
      assert.ok(
        command.options.some(({ long }) => long === flag),
        `${args[0]} has no ${flag}`,
      );
  }
  const moved = argsOf('/srv/pki').filter(args => args.includes('--certificates-dir=/srv/pki'));
  assert.equal(moved.length, 2, 'agents look where kubeadm keeps certificates');
});
