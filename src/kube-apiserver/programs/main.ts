import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createRegistry } from '../../controller/metrics.ts';
import { aborted } from '../../kube/aborted.ts';
import { systemClock } from '../../kube/clock.ts';
import { systemKeys } from '../../pki/keys.ts';
import { asProgram, connect, type Env, ownPod } from '../../staticpod/node/main.ts';
import { onThisNode } from '../../staticpod/node/this-node.ts';
import { connectivityMetrics } from '../metrics/connectivity.ts';
import { runCertRegeneration } from './cert-regeneration.ts';
import { runCheckEndpoints } from './check-endpoints.ts';
import { parseInsecureReadyzOptions, startInsecureReadyz } from './insecure-readyz.ts';
import { parseCertRegenerationOptions, parseCheckEndpointsOptions } from './options.ts';
import { startSecureHealth } from './secure-health.ts';

/** `rotunda cert-regeneration-controller`. Resolves with the exit code. */
export function certRegenerationMain(argv: readonly string[], env: Env): Promise<number> {
  return asProgram('cert-regeneration-controller', env, async (log, signal) => {
    const { kubeconfig, namespace, keyAlgorithm } = parseCertRegenerationOptions(argv, env);
    const { kube, events, close } = await connect(kubeconfig, env, log);
    try {
      const recorder = events.recorder('cert-regeneration-controller', ownPod(namespace, env));
      const identity = `${env.NODE_NAME || hostname()}_${randomUUID()}`;
      await runCertRegeneration(
        { kube, clock: systemClock, keys: systemKeys, events: recorder, log, identity, keyAlgorithm },
        signal,
      );
    } finally {
      await close();
    }
  });
}

/** `rotunda insecure-readyz`. */
export function insecureReadyzMain(argv: readonly string[], env: Env): Promise<number> {
  return asProgram('insecure-readyz', env, async (log, signal) => {
    const options = parseInsecureReadyzOptions(argv);
    const delegateUrl = onThisNode(options.delegateUrl, env);
    const server = await startInsecureReadyz(
      { ...options, delegateUrl, host: env.ROTUNDA_NODE_ADDRESS || undefined },
      log,
    );
    await aborted(signal);
    await server.stop();
  });
}

/** `rotunda check-endpoints`. */
export function checkEndpointsMain(argv: readonly string[], env: Env): Promise<number> {
  return asProgram('check-endpoints', env, async (log, signal) => {
    const { kubeconfig, namespace, podName, host, port } = parseCheckEndpointsOptions(argv, env);
    const { kube, events, close } = await connect(kubeconfig, env, log);
    const registry = createRegistry();
    const listenOn = env.ROTUNDA_NODE_ADDRESS || host;
    const health = await startSecureHealth({ host: listenOn, port, clock: systemClock, keys: systemKeys, registry });
    try {
      const recorder = events.recorder('check-endpoints', ownPod(namespace, env));
      const metrics = connectivityMetrics(registry, namespace);
      await runCheckEndpoints({ kube, clock: systemClock, log, events: recorder, namespace, podName, metrics }, signal);
    } finally {
      await health.stop();
      await close();
    }
  });
}
