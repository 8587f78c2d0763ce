import { seconds } from '../kube/duration.ts';
import {
  CERT_REGENERATION,
  CERT_SYNCER,
  CHECK_ENDPOINTS,
  KUBE_APISERVER,
  UNREVISIONED,
  WATCH_TERMINATION,
} from '../kube-apiserver/operand-objects.ts';
import { REGENERATION_LEASE, runRegeneration } from '../kube-apiserver/programs/cert-regeneration.ts';
import type { Keys } from '../pki/keys.ts';
import { unloadable } from '../staticpod/loadable.ts';
import { runCertSyncer } from '../staticpod/node/cert-syncer.ts';
import { Component, type ComponentWorld } from './component.ts';
import { asLeader } from './leader.ts';
import { mortal } from './mortal.ts';
import { RESOURCES, type TwinNode } from './node.ts';
import type { Operand } from './static-pods.ts';

/** A kube-apiserver becomes ready after so long. */
const READY_MS = seconds(8);

export interface KubeApiserverParts {
  readonly world: ComponentWorld;
  readonly node: TwinNode;
  /** Absent: nobody regenerates certificates but the operator. */
  readonly regeneration?: { readonly keys: Keys } | undefined;
}

/** The static pod of kube-apiserver on one node: a model of the server, and the real programs beside it. */
export function kubeApiserverOn({ world, node, regeneration }: KubeApiserverParts): {
  operand: Operand;
  programs: Component[];
} {
  const syncer = new Component(world, `${CERT_SYNCER} on ${node.name}`, ({ kube, clock, log, events }, signal) =>
    runCertSyncer(
      {
        namespace: 'openshift-kube-apiserver',
        destinationDir: `${RESOURCES}/${UNREVISIONED.directory}`,
        configMaps: UNREVISIONED.configMaps,
        secrets: UNREVISIONED.secrets,
        contentCheck: unloadable,
      },
      { kube, files: mortal(node.disk.files, signal), lock: node.lock, clock, log, events },
      signal,
    ),
  );
  const regenerating = (parts: { readonly keys: Keys }) =>
    new Component(
      world,
      `${CERT_REGENERATION} on ${node.name}`,
      asLeader(world.time, REGENERATION_LEASE, (tools, signal) =>
        runRegeneration({ ...tools, ...parts, keyAlgorithm: 'P-256' }, signal),
      ),
    );
  const programs = [syncer, ...(regeneration === undefined ? [] : [regenerating(regeneration)])];
  return {
    programs,
    operand: {
      processes: [KUBE_APISERVER, CERT_SYNCER, CERT_REGENERATION, CHECK_ENDPOINTS, WATCH_TERMINATION],
      begin(_pod, ready) {
        for (const program of programs) program.start();
        void world.time.after(READY_MS * node.slowness).then(() => ready(true));
        return {
          end: () => {
            for (const program of programs) program.stop();
          },
        };
      },
    },
  };
}
