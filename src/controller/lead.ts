import { createIfMissing } from '../kube/create-if-missing.ts';
import { KubeError } from '../kube/error.ts';
import { acquireLease, type LeaseOptions } from '../kube/lease.ts';
import type { Kube } from '../kube/port.ts';
import { NAMESPACES, type ObjectKey } from '../kube/resource.ts';
import type { Log } from './log.ts';

export interface LeadOptions extends Omit<LeaseOptions, 'onError' | 'lease'> {
  readonly lease: ObjectKey & { readonly namespace: string };
  readonly log: Log;
}

/**
 * Waits for a lease, works as long as it is ours, and gives it back. `work` gets an API that refuses writes after the loss. Rejects with
 * `LeadershipLost` when the lease is lost before `signal` aborts.
 */
export async function lead(
  options: LeadOptions,
  work: (kube: Kube, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { kube, lease, identity, log } = options;
  const name = `${lease.namespace}/${lease.name}`;
  await ensureNamespace(kube, lease.namespace);
  log.info({ lease: name, identity }, 'waiting for the leadership');
  let toldOf = '';
  const onHeld = (holder: string) => {
    options.onHeld?.(holder);
    if (holder !== toldOf) log.info({ lease: name, holder }, 'somebody else leads');
    toldOf = holder;
  };
  const onError = (error: unknown) => log.warn({ err: error }, 'the lease could not be written');
  const leadership = await acquireLease({ ...options, onError, onHeld }, signal).catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
  if (leadership === undefined) return;
  log.info({ lease: name }, 'leading');
  try {
    await work(leadership.fenced(kube), AbortSignal.any([signal, leadership.signal]));
    if (!signal.aborted) leadership.signal.throwIfAborted();
  } finally {
    await leadership.release();
  }
}

/** The lease needs somewhere to live. Where we may not make it, it has been installed, or the lease says so. */
async function ensureNamespace(kube: Kube, name: string): Promise<void> {
  try {
    await createIfMissing(kube, NAMESPACES, { metadata: { name } });
  } catch (error) {
    if (!(error instanceof KubeError && error.code === 403)) throw error;
  }
}
