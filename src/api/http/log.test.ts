import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { load } from 'js-yaml';
import { PODS } from '../../kube/resource.ts';
import { type Api, startApi } from '../api.ts';
import type { PodLogs } from '../rest/core.ts';

describe('the output of containers over HTTPS', () => {
  let api: Api;
  let read: PodLogs['read'];
  before(async () => {
    api = await startApi({ podLogs: { read: (...asked) => read(...asked) } });
    const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] };
    await api.kube.create(PODS, { metadata: { name: 'p', namespace: 'default' }, spec });
  });
  after(() => api.close());

  function get(query = ''): Promise<IncomingMessage> {
    const { clusters, users } = load(api.kubeconfig) as Record<string, Record<string, Record<string, string>>[]>;
    const text = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString();
    const login = {
      ca: text(clusters?.[0]?.['cluster']?.['certificate-authority-data']),
      cert: text(users?.[0]?.['user']?.['client-certificate-data']),
      key: text(users?.[0]?.['user']?.['client-key-data']),
    };
    return new Promise((resolve, reject) => {
      request(`${api.url}/api/v1/namespaces/default/pods/p/log${query}`, { ...login, agent: false }, resolve)
        .on('error', reject)
        .end();
    });
  }

  it('comes as it is, however much there is', async () => {
    // Parts of larger buffers, and more than a connection takes at once.
    const chunks = Array.from({ length: 64 }, (_, index) => Buffer.alloc(100_000, index).subarray(7));
    read = async function* () {
      yield* chunks;
    };
    const answer = await get();
    assert.equal(answer.headers['content-type'], 'text/plain');
    assert.deepEqual(await buffer(answer), Buffer.concat(chunks));
  });

  it('is asked for as the client wants it', async () => {
    let asked: unknown[] = [];
    read = async function* (pod, container, { signal: _signal, ...options }) {
      asked = [pod.metadata?.name, container, options];
      yield Buffer.from('.');
    };
    await buffer(await get('?container=c&follow=true&timestamps=1&tailLines=3&limitBytes=9&sinceSeconds=5'));
    const options = {
      follow: true,
      previous: false,
      timestamps: true,
      tailLines: 3,
      limitBytes: 9,
      sinceSeconds: 5,
      sinceTime: undefined,
    };
    assert.deepEqual(asked, ['p', 'c', options]);
  });

  it('that breaks off does not look complete', async () => {
    read = async function* () {
      yield Buffer.from('the beginning');
      throw new Error('the node is gone');
    };
    await assert.rejects(get().then(buffer), { code: 'ECONNRESET' });
  });

  it('is read no further when the client has gone', async () => {
    let end: () => void = () => {};
    const ended = new Promise<void>(resolve => (end = resolve));
    read = async function* (_pod, _container, { signal }) {
      try {
        yield Buffer.from('the beginning');
        await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));
        for (;;) yield Buffer.from('more');
      } finally {
        end();
      }
    };
    const answer = await get('?follow=true');
    answer.once('data', () => answer.destroy());
    await ended;
  });
});
