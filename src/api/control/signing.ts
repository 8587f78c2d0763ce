import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { type SignerOptions, signedStatus } from '../auth/signer.ts';
import type { Kind } from '../kinds/kind.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import type { Controller } from './controller.ts';
import { Worker } from './worker.ts';

const BUCKET = 'certificates.k8s.io/certificatesigningrequests';

/** Issues certificates for requests that are approved and meant for a signer of ours. */
export function signRequests(
  core: Core,
  signer: SignerOptions,
  onError: (key: string, error: unknown) => void,
): Controller {
  const worker = new Worker(core.clock, name => look(name), onError);
  const stop = core.store.watch(BUCKET, core.store.revision, ({ entry, type }) => {
    if (type !== 'deleted') worker.add(entry.path);
  });
  for (const { path } of core.store.list(BUCKET)) worker.add(path);
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  async function look(name: string): Promise<undefined> {
    const entry = core.store.get(BUCKET, name);
    if (entry === undefined) return;
    const request = entry.object as unknown as CertificateSigningRequest;
    const status = await signedStatus(request, signer, core.clock.now());
    if (status === undefined) return;
    await amend(core, core.registry.ofBucket(BUCKET) as Kind, name, object =>
      // Signing took a moment; a request that changed meanwhile is looked at again.
      object.metadata?.resourceVersion === request.metadata?.resourceVersion ? { ...object, status } : object,
    );
  }
}
