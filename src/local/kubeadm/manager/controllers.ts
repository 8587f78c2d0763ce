import { Controller, runAll } from '../../../controller/controller.ts';
import type { Log } from '../../../controller/log.ts';
import type { Result } from '../../../controller/reconcile.ts';
import { named, objectKey, onChange } from '../../../controller/trigger.ts';
import { systemClock } from '../../../kube/clock.ts';
import { minutes } from '../../../kube/duration.ts';
import { isConflict, isNotFound } from '../../../kube/error.ts';
import { eventsTo } from '../../../kube/events.ts';
import { Informer } from '../../../kube/informer.ts';
import type { Kube } from '../../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, NAMESPACES, SECRETS } from '../../../kube/resource.ts';
import { CLUSTER_INFO, ROOT_CA } from '../../../kubeadm/names.ts';
import { joinTokensIn, nextEnd, signClusterInfo } from './join-signatures.ts';
import type { Loaded } from './program.ts';
import { publishRootCa, publishToTokens, TOKEN_SECRET } from './root-ca.ts';
import { approveOwn, issueApproved } from './signing.ts';

export interface ManagerWork {
  readonly kube: Kube;
  readonly loaded: Loaded;
  /** How long what it signs is good. */
  readonly signedMs: number;
  readonly log: Log;
}

const RESYNC_MS = minutes(10);
const SYSTEM = 'kube-system';
const NO_EVENTS = eventsTo('kube-controller-manager', () => {});

/** The controllers of kube-controller-manager that certificates go through; none of the others. */
export async function runControllers({ kube, loaded, signedMs, log }: ManagerWork, signal: AbortSignal): Promise<void> {
  const onError = (error: unknown) => log.warn({ err: error }, 'watching failed');
  const namespaces = new Informer(kube, NAMESPACES, { onError });
  const configMaps = new Informer(kube, CONFIG_MAPS, { onError });
  const secrets = new Informer(kube, SECRETS, { onError });
  const requests = new Informer(kube, CERTIFICATE_SIGNING_REQUESTS, { onError });
  const common = { clock: systemClock, events: NO_EVENTS, log, resyncMs: RESYNC_MS };
  // Somebody else wrote in between, or it is gone.
  const tolerantly = async (work: Promise<void>): Promise<Result> => {
    try {
      await work;
      return {};
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return { retry: isConflict(error) };
    }
  };
  const controllers = [
    new Controller({
      ...common,
      name: 'root-ca-certificate-publisher',
      reconcile: () =>
        tolerantly(
          publishRootCa(
            { kube, namespaces: namespaces.list(), configMaps: configMaps.list() },
            loaded('root-ca') ?? '',
          ),
        ),
      triggers: [onChange(namespaces), onChange(configMaps, { when: named(ROOT_CA.name) })],
    }),
    new Controller({
      ...common,
      name: 'serviceaccount-token-controller',
      reconcile: () => tolerantly(publishToTokens(kube, secrets.list(), loaded('root-ca') ?? '')),
      triggers: [onChange(secrets, { when: ({ type }) => type === TOKEN_SECRET })],
    }),
    new Controller({
      ...common,
      name: 'certificatesigningrequest-approving-controller',
      reconcile: name => tolerantly(approveOwn(kube, requests.get({ name }))),
      triggers: [onChange(requests, { keys: objectKey })],
    }),
    new Controller({
      ...common,
      name: 'certificatesigningrequest-signing-controller',
      reconcile: name => tolerantly(issueApproved(kube, requests.get({ name }), loaded, signedMs)),
      triggers: [onChange(requests, { keys: objectKey })],
    }),
    new Controller({
      ...common,
      name: 'bootstrap-signer-controller',
      reconcile: async () => {
        const now = systemClock.now();
        const tokens = joinTokensIn(secrets.list());
        const result = await tolerantly(signClusterInfo(kube, configMaps.get(CLUSTER_INFO), tokens, now));
        return { ...result, againAt: nextEnd(tokens, now) };
      },
      triggers: [
        onChange(configMaps, { when: ({ metadata }) => metadata?.namespace === CLUSTER_INFO.namespace }),
        onChange(secrets, { when: ({ metadata }) => metadata?.namespace === SYSTEM }),
      ],
    }),
  ];
  const informers = [namespaces, configMaps, secrets, requests];
  for (const informer of informers) informer.start();
  try {
    await runAll(controllers, signal);
  } finally {
    await Promise.all(informers.map(informer => informer.stop()));
  }
}
