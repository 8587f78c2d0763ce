import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApi } from '../../src/api/api.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { KubeError } from '../../src/kube/error.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';

/** The API under test: whatever ROTUNDA_TEST_KUBECONFIG points at, or an embedded one made for this run. */
export interface TestCluster {
  readonly kube: HttpKube;
  readonly isEmbedded: boolean;
  /** Makes a namespace of its own for a test; all of them go away at the end. */
  namespace(): Promise<string>;
  close(): Promise<void>;
}

export async function testCluster(): Promise<TestCluster> {
  const given = process.env.ROTUNDA_TEST_KUBECONFIG;
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-contract-'));
  const api = given === undefined ? await startApi({ dir }) : undefined;
  const kube = new HttpKube(await loadAccess({ path: given ?? join(dir, 'kubeconfig') }));
  const namespaces: string[] = [];
  return {
    kube,
    isEmbedded: api !== undefined,
    async namespace() {
      const name = `contract-${randomBytes(5).toString('hex')}`;
      await kube.create(NAMESPACES, { metadata: { name } });
      namespaces.push(name);
      return name;
    },
    async close() {
      for (const name of namespaces) await kube.delete(NAMESPACES, { name }).catch(() => {});
      await kube.close();
      await api?.close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** The failure a call ends with. */
export async function failure(call: Promise<unknown>): Promise<KubeError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof KubeError) return error;
    throw error;
  }
  throw new Error('expected the API to refuse this');
}
