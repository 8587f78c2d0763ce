import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { days } from '../kube/duration.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { kubeApiserverTrust } from '../kube-apiserver/trust.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import type { Edge } from '../trust/graph.ts';
import { secret } from '../trust/object.ts';
import type { Answer, Question } from './ask.ts';
import { surveyOf } from './survey.ts';

const OPERATOR = 'openshift-kube-apiserver-operator';

describe('who has loaded a CA (spec 90, section 3)', async () => {
  const graph = kubeApiserverTrust();
  const made = (commonName: string) =>
    issueSigner({ commonName, keys: seededKeys(commonName), now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' });
  const [old, next, other] = (await Promise.all([made('ns_signer@1'), made('ns_signer@2'), made('ns_other@2')])).map(
    ({ chain: [certificate] }) => certificate as Certificate,
  ) as [Certificate, Certificate, Certificate];
  const routes = ({ server }: Edge) => {
    if (server.nodes === 'anywhere') return 'nobody knows where';
    const port = server.process === 'kubelet' ? 10250 : 6443;
    return ['a', 'b'].map(node => ({ from: 'elsewhere', host: node, port }));
  };
  const survey = async (name: string, answers: (question: Question) => Answer) => {
    const asked: string[] = [];
    const ask = async (question: Question) => {
      asked.push(`${question.host}:${question.port}`);
      return answers(question);
    };
    const said = await surveyOf({
      graph,
      signer: secret(OPERATOR, name),
      certificate: next,
      routes,
      nodeAt: host => host,
      timeoutMs: 1,
      ask,
    });
    return { ...said, asked: asked.toSorted() };
  };
  const loaded = (...certificates: Certificate[]): Answer => ({
    kind: 'loaded',
    authorities: certificates.map(({ subject }) => subject.der),
  });

  test('kubelets and kube-apiservers are asked about the signer of kubelet clients, each port once', async () => {
    const said = await survey('kube-apiserver-to-kubelet-signer', ({ host, port }) => {
      if (host === 'b' && port === 10250) return loaded(old);
      return loaded(old, next);
    });
    assert.deepEqual(said, {
      asked: ['a:10250', 'a:6443', 'b:10250', 'b:6443'],
      loaded: ['kube-apiserver on a', 'kube-apiserver on b', 'kubelet on a'],
      missing: ['kubelet on b'],
      silent: [],
      clients: [],
    });
  });

  test('no answer, and an answer that names nobody, are not evidence', async () => {
    const said = await survey('node-system-admin-signer', ({ host }) =>
      host === 'a' ? { kind: 'not-asking' } : { kind: 'silent', reason: 'ECONNREFUSED' },
    );
    assert.deepEqual([said.loaded, said.missing], [[], []]);
    assert.ok(said.silent.includes('kube-apiserver on a: does not say which CAs it has loaded'));
    assert.ok(said.silent.includes('kube-apiserver on b: ECONNREFUSED'));
  });

  test('a server whose list has nothing of this signer has another list for it', async () => {
    const said = await survey('aggregator-client-signer', () => loaded(other));
    assert.deepEqual([said.loaded, said.missing], [[], []]);
    assert.ok(said.silent.some(text => text.startsWith('kube-apiserver on a: names no CA of this signer')));
  });

  test('who checks servers cannot be asked and is named', async () => {
    const said = await survey('loadbalancer-serving-signer', () => loaded(next));
    assert.deepEqual([said.asked, said.loaded], [[], []]);
    assert.ok(said.clients.includes('kubelet') && said.clients.includes('pod'), said.clients.join());
  });

  test('every signer of the table has somebody who verifies', async () => {
    for (const { signer } of KUBE_APISERVER_CHAINS) {
      const { loaded: servers, silent, clients } = await survey(signer.name, () => loaded(next));
      assert.ok(servers.length + silent.length + clients.length > 0, signer.name);
    }
  });
});
