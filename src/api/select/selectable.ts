import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Event, Namespace, Node, Pod, Secret, Service } from 'kubernetes-types/core/v1.d.ts';
import type { Event as RegardingEvent } from 'kubernetes-types/events/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';

type Read = (object: KubeObject) => string;

/** Which fields a kind can be selected by, and how each is read. */
export interface SelectableFields {
  readonly read: ReadonlyMap<string, Read>;
  /** What to say about a field that is not in `read`. */
  readonly refuse: (field: string) => string;
}

/** The selectable fields of a built-in kind; kinds without fields of their own have name and namespace. */
export function selectableFields(group: string, plural: string): SelectableFields {
  return BUILT_IN.get(`${group}/${plural}`) ?? NAME_AND_NAMESPACE;
}

/** The selectable fields of a custom resource: `jsonPaths` are those of `spec.versions[].selectableFields`. */
export function customSelectableFields(jsonPaths: readonly string[] = [], namespaced = true): SelectableFields {
  const own = jsonPaths.map(jsonPath => {
    const path = jsonPath.replace(/^\./, '');
    return [path, (object: KubeObject) => textAt(object, path.split('.'))] as const;
  });
  return fields({ ...(namespaced ? META : NAME_ONLY), ...Object.fromEntries(own) });
}

const NAME_ONLY: Readonly<Record<string, Read>> = {
  'metadata.name': object => object.metadata?.name ?? '',
};

const META: Readonly<Record<string, Read>> = {
  ...NAME_ONLY,
  'metadata.namespace': object => object.metadata?.namespace ?? '',
};

const NAME_AND_NAMESPACE: SelectableFields = {
  read: new Map(Object.entries(META)),
  refuse: field => `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
};

/** Keyed by `<group>/<plural>`. */
const BUILT_IN: ReadonlyMap<string, SelectableFields> = new Map([
  [
    '/pods',
    fields({
      ...META,
      ...of<Pod>({
        'spec.nodeName': pod => pod.spec?.nodeName,
        'spec.host': pod => pod.spec?.nodeName,
        'spec.restartPolicy': pod => pod.spec?.restartPolicy,
        'spec.schedulerName': pod => pod.spec?.schedulerName,
        'spec.serviceAccountName': pod => pod.spec?.serviceAccountName,
        'spec.hostNetwork': pod => String(pod.spec?.hostNetwork ?? false),
        'status.phase': pod => pod.status?.phase,
        'status.podIP': pod => pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP,
        'status.podIPs': pod => pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP,
        'status.nominatedNodeName': pod => pod.status?.nominatedNodeName,
      }),
    }),
  ],
  [
    '/nodes',
    fields({ ...NAME_ONLY, ...of<Node>({ 'spec.unschedulable': node => String(node.spec?.unschedulable ?? false) }) }),
  ],
  ['/namespaces', fields({ ...NAME_ONLY, ...of<Namespace>({ 'status.phase': namespace => namespace.status?.phase }) })],
  ['/secrets', fields({ ...META, ...of<Secret>({ type: secret => secret.type }) })],
  [
    '/services',
    fields({
      ...META,
      ...of<Service>({
        'spec.clusterIP': service => service.spec?.clusterIP,
        'spec.type': service => service.spec?.type,
      }),
    }),
  ],
  [
    '/events',
    fields({
      ...META,
      ...of<Event>({
        'involvedObject.kind': event => event.involvedObject?.kind,
        'involvedObject.namespace': event => event.involvedObject?.namespace,
        'involvedObject.name': event => event.involvedObject?.name,
        'involvedObject.uid': event => event.involvedObject?.uid,
        'involvedObject.apiVersion': event => event.involvedObject?.apiVersion,
        'involvedObject.resourceVersion': event => event.involvedObject?.resourceVersion,
        'involvedObject.fieldPath': event => event.involvedObject?.fieldPath,
        reason: event => event.reason,
        reportingComponent: event => event.reportingComponent,
        source: event => event.source?.component || event.reportingComponent,
        type: event => event.type,
      }),
    }),
  ],
  [
    'events.k8s.io/events',
    fields({
      ...META,
      ...of<RegardingEvent>({
        'regarding.kind': event => event.regarding?.kind,
        'regarding.namespace': event => event.regarding?.namespace,
        'regarding.name': event => event.regarding?.name,
        'regarding.uid': event => event.regarding?.uid,
        'regarding.apiVersion': event => event.regarding?.apiVersion,
        'regarding.resourceVersion': event => event.regarding?.resourceVersion,
        'regarding.fieldPath': event => event.regarding?.fieldPath,
        reason: event => event.reason,
        reportingController: event => event.reportingController,
        type: event => event.type,
      }),
    }),
  ],
  [
    'certificates.k8s.io/certificatesigningrequests',
    fields({
      ...NAME_ONLY,
      ...of<CertificateSigningRequest>({ 'spec.signerName': request => request.spec?.signerName }),
    }),
  ],
]);

function fields(read: Readonly<Record<string, Read>>): SelectableFields {
  return { read: new Map(Object.entries(read)), refuse: field => `field label not supported: ${field}` };
}

type ReadersOf<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/** An absent field reads as the empty string. */
function of<T extends KubeObject>(readers: ReadersOf<T>): Readonly<Record<keyof ReadersOf<T>, Read>> {
  return Object.fromEntries(
    Object.entries(readers).map(([path, read]) => [path, (object: KubeObject) => read(object as T) ?? '']),
  );
}

function textAt(object: unknown, path: readonly string[]): string {
  let value = object;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return '';
    value = (value as Record<string, unknown>)[step];
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
