import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import type { ConfigMap, Namespace, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { bindingPrinter, signingRequestPrinter } from './access.ts';
import { AGE, integer, NAME, printerOf, text, wideText } from './column.ts';
import { eventPrinter } from './event.ts';
import { endpointSlicePrinter, endpointsPrinter, servicePrinter } from './network.ts';
import { nodePrinter } from './node.ts';
import { podPrinter } from './pod.ts';
import type { Printer } from './table.ts';
import {
  controllerRevisionPrinter,
  daemonSetPrinter,
  deploymentPrinter,
  disruptionBudgetPrinter,
  jobPrinter,
  replicaSetPrinter,
  statefulSetPrinter,
} from './workload.ts';

/** The printer of a built-in kind; one without columns of its own shows name and creation time. */
export function printerFor(group: string, plural: string): Printer {
  return PRINTERS.get(`${group}/${plural}`) ?? NAME_AND_CREATION;
}

const NAME_AND_CREATION = printerOf<KubeObject>([
  NAME,
  {
    ...text('Created At', 'When the object was created.', object => object.metadata?.creationTimestamp),
    type: 'date',
  },
]);

const configMapPrinter = printerOf<ConfigMap>([
  NAME,
  text('Data', 'How many entries it has.', map => entries(map.data) + entries(map.binaryData)),
  AGE,
]);

const secretPrinter = printerOf<Secret>([
  NAME,
  text('Type', 'What the secret is for.', secret => secret.type),
  text('Data', 'How many entries it has.', secret => entries(secret.data)),
  AGE,
]);

const namespacePrinter = printerOf<Namespace>([
  NAME,
  text('Status', 'Active or Terminating.', ({ status }) => status?.phase),
  AGE,
]);

const serviceAccountPrinter = printerOf<ServiceAccount>([
  NAME,
  integer('Secrets', 'How many secrets the account names.', account => account.secrets?.length),
  AGE,
]);

const leasePrinter = printerOf<Lease>([
  NAME,
  text('Holder', 'Who holds the lease.', ({ spec }) => spec?.holderIdentity),
  AGE,
]);

const priorityClassPrinter = printerOf<PriorityClass>([
  NAME,
  integer('Value', 'The higher, the more important.', priority => priority.value),
  {
    ...text(
      'Global-Default',
      'For pods that name no class.',
      (priority: PriorityClass) => priority.globalDefault ?? false,
    ),
    type: 'boolean',
  },
  AGE,
  wideText('PreemptionPolicy', 'Whether others are put off for it.', priority => priority.preemptionPolicy),
]);

/** Keyed by `<group>/<plural>`. */
const PRINTERS: ReadonlyMap<string, Printer> = new Map([
  ['/configmaps', configMapPrinter],
  ['/endpoints', endpointsPrinter],
  ['/events', eventPrinter],
  ['/namespaces', namespacePrinter],
  ['/nodes', nodePrinter],
  ['/pods', podPrinter],
  ['/secrets', secretPrinter],
  ['/serviceaccounts', serviceAccountPrinter],
  ['/services', servicePrinter],
  ['apps/controllerrevisions', controllerRevisionPrinter],
  ['apps/daemonsets', daemonSetPrinter],
  ['apps/deployments', deploymentPrinter],
  ['apps/replicasets', replicaSetPrinter],
  ['apps/statefulsets', statefulSetPrinter],
  ['batch/jobs', jobPrinter],
  ['certificates.k8s.io/certificatesigningrequests', signingRequestPrinter],
  ['coordination.k8s.io/leases', leasePrinter],
  ['discovery.k8s.io/endpointslices', endpointSlicePrinter],
  ['events.k8s.io/events', eventPrinter],
  ['policy/poddisruptionbudgets', disruptionBudgetPrinter],
  ['rbac.authorization.k8s.io/clusterrolebindings', bindingPrinter],
  ['rbac.authorization.k8s.io/rolebindings', bindingPrinter],
  ['scheduling.k8s.io/priorityclasses', priorityClassPrinter],
]);

function entries(map: Readonly<Record<string, string>> | undefined): number {
  return Object.keys(map ?? {}).length;
}
