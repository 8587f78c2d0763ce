/** The names both halves of machine configuration meet at (spec 50, sections 2.7 and 16). */

export const MCO_NAMESPACE = 'openshift-machine-config-operator';
/** Held by whichever of several works (spec 50); upstream's take the same ones. */
export const OPERATOR_LEASE = { namespace: MCO_NAMESPACE, name: 'machine-config' } as const;
export const CONTROLLER_LEASE = { namespace: MCO_NAMESPACE, name: 'machine-config-controller' } as const;
export const CONFIG_NAMESPACE = 'openshift-config';
export const CONFIG_MANAGED_NAMESPACE = 'openshift-config-managed';
export const MACHINE_API_NAMESPACE = 'openshift-machine-api';
export const KUBE_SYSTEM_NAMESPACE = 'kube-system';
export const KUBE_APISERVER_OPERATOR_NAMESPACE = 'openshift-kube-apiserver-operator';

export const CONTROLLER_CONFIG_NAME = 'machine-config-controller';
/** The only instance of MachineConfiguration and of the kinds of config.openshift.io. */
export const CLUSTER = 'cluster';
export const CLUSTER_OPERATOR_NAME = 'machine-config';

const PREFIX = 'machineconfiguration.openshift.io/';

/** Annotations of Nodes. */
export const CURRENT_CONFIG = `${PREFIX}currentConfig`;
export const DESIRED_CONFIG = `${PREFIX}desiredConfig`;
export const CURRENT_IMAGE = `${PREFIX}currentImage`;
export const DESIRED_IMAGE = `${PREFIX}desiredImage`;
export const DAEMON_STATE = `${PREFIX}state`;
export const DAEMON_REASON = `${PREFIX}reason`;
export const DESIRED_DRAIN = `${PREFIX}desiredDrain`;
export const LAST_APPLIED_DRAIN = `${PREFIX}lastAppliedDrain`;
export const CONTROL_PLANE_TOPOLOGY = `${PREFIX}controlPlaneTopology`;
export const LAST_OBSERVED_SERVER_CA = `${PREFIX}lastObservedServerCAAnnotation`;
export const LAST_SYNCED_CONTROLLER_CONFIG = `${PREFIX}lastSyncedControllerConfigResourceVersion`;
/** `Rebooting` from the moment a reboot is queued until the first sync after it (spec 60, section 3). */
export const POST_CONFIG_ACTION = `${PREFIX}post-config-action`;
export const OSTREE_FINALIZE_FAILURE = `${PREFIX}ostree-finalize-staged-failure`;
/** `accessed` once somebody logged in to the machine; never removed (spec 60, section 15). */
export const SSH_ACCESS = `${PREFIX}ssh`;

/** Annotations of ControllerConfig and MachineConfigs. */
export const GENERATED_BY_VERSION = `${PREFIX}generated-by-version`;
export const GENERATED_BY_CONTROLLER_VERSION = `${PREFIX}generated-by-controller-version`;
export const RELEASE_IMAGE_VERSION = `${PREFIX}release-image-version`;
export const SERVICE_CA_ROTATE = `${PREFIX}service-ca-rotate`;
export const OS_IMAGE_URL_OVERRIDDEN = `${PREFIX}os-image-url-overridden`;
export const NAME_SUFFIX = `${PREFIX}mc-name-suffix`;

/**
 * Ours: SHA-256 of the server CA bundle in `kubeconfig-data`. On ControllerConfig the one nodes should have, on a Node the
 * one its agent has taken over. A node that was away compares the two when it is back (spec 50, trap 5).
 */
export const SERVER_CA_DIGEST = 'rotunda.dev/server-ca-digest';

/** Labels. */
export const ROLE_LABEL = `${PREFIX}role`;
export const BUILT_IN_POOL_LABEL = `${PREFIX}mco-built-in`;
export const REQUIRED_FOR_UPGRADE_LABEL = 'operator.machineconfiguration.openshift.io/required-for-upgrade';
export const POOL_NAME_LABEL_PREFIX = 'pools.operator.machineconfiguration.openshift.io/';
export const MASTER_NODE_LABEL = 'node-role.kubernetes.io/master';
export const CONTROL_PLANE_NODE_LABEL = 'node-role.kubernetes.io/control-plane';
export const WORKER_NODE_LABEL = 'node-role.kubernetes.io/worker';
export const ZONE_LABEL = 'topology.kubernetes.io/zone';
export const OS_LABEL = 'kubernetes.io/os';

export const MASTER_POOL = 'master';
export const WORKER_POOL = 'worker';

/** Marks nodes that wait to be targeted (spec 50, ND-30). */
export const UPDATE_IN_PROGRESS_TAINT = { key: 'UpdateInProgress', effect: 'PreferNoSchedule' } as const;

/** A ConfigMap that only has to exist: no drain for changes of registries.conf (spec 60, 9.2). */
export const DRAIN_OVERRIDE = 'image-registry-override-drain';
export const KUBECONFIG_DATA = 'kubeconfig-data';
export const CA_BUNDLE_KEY = 'ca-bundle.crt';
export const MACHINE_OS_PULLER = 'machine-os-puller';
export const DOCKER_CFG_KEY = '.dockercfg';
export const DOCKER_CONFIG_JSON_KEY = '.dockerconfigjson';
export const DOCKER_CONFIG_JSON_TYPE = 'kubernetes.io/dockerconfigjson';
/** Where the machine-config server answers. */
export const SERVER_PORT = 22623;
