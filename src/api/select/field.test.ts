import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { exactField, matchesFields, parseFieldSelector, selectedName } from './field.ts';
import { customSelectableFields, selectableFields } from './selectable.ts';
import { selection } from './selection.ts';

const pods = selectableFields('', 'pods');
const pod = {
  metadata: { name: 'etcd-master-0', namespace: 'openshift-etcd', labels: { app: 'etcd' } },
  spec: { nodeName: 'master-0', restartPolicy: 'Always' },
  status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
} as KubeObject;

describe('field selectors: matching', () => {
  const event = {
    metadata: { name: 'e', namespace: 'n' },
    involvedObject: { kind: 'Pod', name: 'p', namespace: 'n', uid: 'u', apiVersion: 'v1' },
    reason: 'Killing',
    type: 'Normal',
    reportingComponent: 'kubelet',
  } as KubeObject;
  const cases: [rule: string, group: string, plural: string, object: KubeObject, text: string, expected: boolean][] = [
    ['empty', '', 'pods', pod, '', true],
    ['by node', '', 'pods', pod, 'spec.nodeName=master-0', true],
    ['by node, old name', '', 'pods', pod, 'spec.host=master-0', true],
    ['by node and phase', '', 'pods', pod, 'spec.nodeName=master-0,status.phase!=Succeeded', true],
    ['all must hold', '', 'pods', pod, 'spec.nodeName=master-0,status.phase==Failed', false],
    ['first address', '', 'pods', pod, 'status.podIP=10.0.0.1', true],
    ['boolean default', '', 'pods', pod, 'spec.hostNetwork=false', true],
    ['absent field is empty', '', 'pods', pod, 'status.nominatedNodeName=', true],
    ['namespace', '', 'pods', pod, 'metadata.namespace!=openshift-etcd', false],
    ['node', '', 'nodes', { metadata: { name: 'n' } }, 'spec.unschedulable=false', true],
    ['secret type', '', 'secrets', { type: 'kubernetes.io/tls' } as KubeObject, 'type=kubernetes.io/tls', true],
    ['event object', '', 'events', event, 'involvedObject.kind=Pod,involvedObject.uid=u', true],
    ['event reason', '', 'events', event, 'reason=Killing,type=Normal', true],
    ['event source falls back', '', 'events', event, 'source=kubelet', true],
    ['event without object', '', 'events', { metadata: {} }, 'involvedObject.name=', true],
    ['namespace phase', '', 'namespaces', { status: { phase: 'Active' } } as KubeObject, 'status.phase=Active', true],
    [
      'signing request',
      'certificates.k8s.io',
      'certificatesigningrequests',
      { spec: { signerName: 'a/b' } } as KubeObject,
      'spec.signerName=a/b',
      true,
    ],
    ['any other kind by name', 'apps', 'deployments', { metadata: { name: 'd' } }, 'metadata.name=d', true],
  ];
  for (const [rule, group, plural, object, text, expected] of cases) {
    it(rule, () => {
      assert.equal(matchesFields(parseFieldSelector(text, selectableFields(group, plural)), object), expected);
    });
  }

  it('custom resources: declared JSON paths of strings, booleans and integers', () => {
    const selectable = customSelectableFields(['.spec.color', '.spec.size', '.spec.hot'], false);
    const object = { metadata: { name: 'x' }, spec: { color: 'red', size: 3, hot: true } } as KubeObject;
    assert.equal(
      matchesFields(parseFieldSelector('spec.color=red,spec.size=3,spec.hot=true', selectable), object),
      true,
    );
    assert.equal(matchesFields(parseFieldSelector('spec.color=', selectable), { metadata: {} }), true);
  });
});

describe('field selectors: what is refused', () => {
  const unknown = customSelectableFields([], false);
  const cases: [rule: string, text: string, selectable: typeof pods, message: string][] = [
    ['unknown field of a pod', 'spec.foo=1', pods, 'field label not supported: spec.foo'],
    [
      'nodes have no namespace',
      'metadata.namespace=a',
      selectableFields('', 'nodes'),
      'field label not supported: metadata.namespace',
    ],
    [
      'cluster-scoped custom resource',
      'metadata.namespace=a',
      unknown,
      'field label not supported: metadata.namespace',
    ],
    [
      'kind without fields of its own',
      'data=1',
      selectableFields('', 'configmaps'),
      '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ['no operator', 'a', pods, "invalid selector: 'a'; can't understand 'a'"],
    [
      'second term without operator',
      'metadata.name=a,b',
      pods,
      "invalid selector: 'metadata.name=a,b'; can't understand 'b'",
    ],
    ['bad escape', 'metadata.name=a\\b', pods, 'invalid field selector: invalid escape sequence: \\b'],
    ['backslash at the end', 'metadata.name=a\\', pods, 'invalid field selector: invalid escape sequence: \\'],
    ['bare equal sign', 'metadata.name=a=b', pods, 'invalid field selector: unescaped character in value: 61'],
  ];
  for (const [rule, text, selectable, message] of cases) {
    it(rule, () => {
      assert.throws(() => parseFieldSelector(text, selectable), { code: 400, reason: 'BadRequest', message });
    });
  }
});

describe('field selectors: escapes and hints', () => {
  it('any value survives escaping', () => {
    fc.assert(
      fc.property(fc.string(), value => {
        const escaped = value.replaceAll(/[\\,=]/g, character => `\\${character}`);
        const query = parseFieldSelector(`metadata.name=${escaped},metadata.namespace!=x`, pods);
        assert.equal(exactField(query, 'metadata.name'), value);
        assert.equal(exactField(query, 'metadata.namespace'), undefined);
      }),
    );
  });

  it('any text is parsed or refused with 400', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        try {
          parseFieldSelector(text, pods);
        } catch (error) {
          assert.ok(error instanceof KubeError && error.code === 400, String(error));
        }
      }),
    );
  });
});

describe('selection', () => {
  it('needs labels and fields to match', () => {
    const request = { labelSelector: 'app=etcd', fieldSelector: 'spec.nodeName=master-0', selectable: pods };
    assert.equal(selection(request).matches(pod), true);
    assert.equal(selection({ ...request, labelSelector: 'app=x' }).matches(pod), false);
    assert.equal(selection({ ...request, fieldSelector: 'spec.nodeName=x' }).matches(pod), false);
    assert.equal(selection(request).everything, false);
    assert.equal(selection({ selectable: pods }).everything, true);
  });
});

it('the name a selector asks for, as far as it asks for one', () => {
  for (const [selector, name] of [
    ['metadata.name=a', 'a'],
    ['metadata.name==a', 'a'],
    ['spec.nodeName=n,metadata.name=a', 'a'],
    ['metadata.name!=a', ''],
    ['metadata.namespace=a', ''],
    ['', ''],
    [undefined, ''],
  ] as const) {
    assert.equal(selectedName(selector), name, selector);
  }
});
