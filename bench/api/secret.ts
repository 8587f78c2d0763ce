import type { Secret } from 'kubernetes-types/core/v1.d.ts';

export const NAMESPACE = 'bench';
const CERTIFICATE = Buffer.alloc(700, 'certificate').toString('base64');
const KEY = Buffer.alloc(240, 'key').toString('base64');

/** A Secret of the size of a P-256 key pair. */
export function secret(name: string): Secret & { metadata: { name: string } } {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name, namespace: NAMESPACE, annotations: { 'rotunda.dev/bench': 'true' } },
    data: { 'tls.crt': CERTIFICATE, 'tls.key': KEY },
  };
}
