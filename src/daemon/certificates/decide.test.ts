import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  CONTROLLER_CONFIG_NAME,
  LAST_OBSERVED_SERVER_CA,
  LAST_SYNCED_CONTROLLER_CONFIG,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import { acknowledgement, decideCertificateSync, UNKNOWN_NODE_AGAIN_MS } from './decide.ts';

const config = (resourceVersion: string, annotations: Record<string, string> = {}) => ({
  metadata: { name: CONTROLLER_CONFIG_NAME, resourceVersion, annotations },
});

test('when a pass goes over the files', () => {
  const decide = (node: Record<string, string> | undefined, rotate: string) =>
    decideCertificateSync(CONTROLLER_CONFIG_NAME, node, config('5', { [SERVICE_CA_ROTATE]: rotate }));
  assert.deepEqual(decide(undefined, 'false'), { sync: false, againMs: UNKNOWN_NODE_AGAIN_MS });
  assert.deepEqual(decide({}, 'false'), { sync: true, isNews: true, isRotationOpen: false });
  const synced = { [LAST_SYNCED_CONTROLLER_CONFIG]: '5' };
  assert.deepEqual(decide(synced, 'false'), { sync: true, isNews: false, isRotationOpen: false });
  assert.deepEqual(decide(synced, 'true'), { sync: true, isNews: true, isRotationOpen: true });
  const observed = { ...synced, [LAST_OBSERVED_SERVER_CA]: 'true' };
  assert.deepEqual(decide(observed, 'true'), { sync: true, isNews: true, isRotationOpen: false });
  assert.deepEqual(decideCertificateSync('other', synced, config('5')), { sync: false });
  assert.deepEqual(decideCertificateSync(CONTROLLER_CONFIG_NAME, synced, undefined), { sync: false });
});

describe('what is said of it on the node', () => {
  const rotating = { [SERVICE_CA_ROTATE]: 'true', [SERVER_CA_DIGEST]: 'd2' };
  const table: {
    what: string;
    node?: Record<string, string>;
    announced: Record<string, string>;
    isComplete?: boolean;
    digest?: string;
    said: Record<string, string>;
  }[] = [
    {
      what: 'a rotation that was taken over',
      announced: rotating,
      digest: 'd2',
      said: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5', [SERVER_CA_DIGEST]: 'd2', [LAST_OBSERVED_SERVER_CA]: 'true' },
    },
    { what: 'one that was not', announced: rotating, said: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5' } },
    {
      what: 'the bundle before: our copy of kubeconfig-data is behind',
      announced: rotating,
      digest: 'd1',
      said: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5', [SERVER_CA_DIGEST]: 'd1' },
    },
    {
      what: 'a central side that knows no digest',
      announced: { [SERVICE_CA_ROTATE]: 'true' },
      digest: 'd1',
      said: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5', [SERVER_CA_DIGEST]: 'd1', [LAST_OBSERVED_SERVER_CA]: 'true' },
    },
    {
      what: 'files that could not be written',
      announced: rotating,
      isComplete: false,
      digest: 'd2',
      said: { [SERVER_CA_DIGEST]: 'd2', [LAST_OBSERVED_SERVER_CA]: 'true' },
    },
    {
      what: 'the end of a rotation',
      node: { [LAST_SYNCED_CONTROLLER_CONFIG]: '4', [SERVER_CA_DIGEST]: 'd2', [LAST_OBSERVED_SERVER_CA]: 'true' },
      announced: { [SERVICE_CA_ROTATE]: 'false', [SERVER_CA_DIGEST]: 'd2' },
      digest: 'd2',
      said: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5', [LAST_OBSERVED_SERVER_CA]: 'false' },
    },
    {
      what: 'nothing new',
      node: { [LAST_SYNCED_CONTROLLER_CONFIG]: '5' },
      announced: {},
      said: {},
    },
  ];
  for (const { what, node = {}, announced, isComplete = true, digest, said } of table) {
    test(what, () => {
      assert.deepEqual(acknowledgement(node, config('5', announced), { isComplete, serverCaDigest: digest }), said);
    });
  }
});
