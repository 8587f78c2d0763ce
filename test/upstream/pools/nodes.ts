import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { candidatesOf, chooseNodes } from '../../../src/machine-config/pool/candidates.ts';
import { maxUnavailable } from '../../../src/machine-config/pool/max-unavailable.ts';
import { poolStatus } from '../../../src/machine-config/pool/status.ts';
import type { MachineConfigPool } from '../../../src/machine-config-api/machine-config.ts';
import { attempt, canonical, plain, unlike, unlikeAt } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';

const PREFIX = 'machineconfiguration.openshift.io/';
const LONG_AGO = '2020-01-01T00:00:00Z';
const NOW = new Date('2026-12-31T00:00:00Z');

interface Input {
  Pool: { metadata: object; spec: { maxUnavailable?: number | string } };
  Nodes: ReturnType<typeof node>[];
  CC?: object;
  OperatorNode: string;
}

interface Answered {
  status: Status;
  max: number;
  maxErr: string;
  candidates: string[] | null;
  capacity: number;
  chosen: string[] | null;
}

/** A pool and its nodes: what is said about them, and which are next. */
function nodes(name: string, hasImages: boolean): Judged {
  return judged<Input>({
    name,
    program: 'mcodiff',
    op: 'nodes',
    generate: r => ({
      Nodes: r.list(r.chance(0.1) ? 30 : 7, index => node(r, index, hasImages)),
      Pool: pool(r, hasImages),
      ...(r.chance(0.5) && { CC: controllerConfig(r) }),
      OperatorNode: r.chance(0.5) ? `n${r.int(4)}` : '',
    }),
    compare: ({ Pool, Nodes, CC, OperatorNode }, { out, err }) => {
      if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
      const theirs = out as Answered;
      const status = attempt(() => poolStatus(Pool, Nodes, CC, NOW));
      const found: Difference[] =
        status.kind === 'value'
          ? unlikeAt('status', said(status.value as unknown as Status), said(theirs.status))
          : [{ class: `rotunda throws: ${plain(status.error)}`, mine: status.error, theirs: theirs.status }];
      return [...found, ...choice(Pool, Nodes, OperatorNode || undefined, theirs)];
    },
  });
}

function choice(
  pool: MachineConfigPool,
  nodes: readonly Node[],
  operatorNode: string | undefined,
  theirs: Answered,
): Difference[] {
  const limit = pool.spec?.maxUnavailable;
  const max = attempt(() => maxUnavailable(limit, nodes.length));
  const refused = unlike(
    `maxUnavailable ${JSON.stringify(limit)}`,
    max.kind === 'value' ? max.value : 'refused',
    theirs.maxErr === '' ? theirs.max : 'refused',
  );
  if (refused.length > 0 || max.kind !== 'value') return refused;
  const candidates = candidatesOf(pool, nodes, max.value);
  const names = (list: readonly Node[]) => list.map(({ metadata }) => metadata?.name ?? '');
  const found = unlikeAt(
    'candidates',
    { candidates: names(candidates.nodes), capacity: candidates.capacity },
    { candidates: theirs.candidates ?? [], capacity: theirs.capacity },
  );
  if (found.length > 0) return found;
  const chosen = names(chooseNodes(pool, candidates, operatorNode).nodes);
  return unlike('chosen', chosen.sort(), [...(theirs.chosen ?? [])].sort());
}

interface Status {
  observedGeneration?: number;
  certExpirys?: { expiry?: string }[];
  configuration?: { name?: string; source?: unknown[] };
  conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  poolSynchronizersStatus?: unknown;
}

/** What a status says, whoever wrote it: defaults filled in, times only as before or now. Pinned images are not here. */
function said({ poolSynchronizersStatus: _pinned, ...status }: Status): unknown {
  return canonical({
    ...status,
    observedGeneration: status.observedGeneration ?? 0,
    certExpirys: (status.certExpirys ?? []).map(({ expiry, ...rest }) => ({ ...rest, expiry: expiry ?? null })),
    configuration: { name: status.configuration?.name ?? '', source: status.configuration?.source ?? [] },
    conditions: (status.conditions ?? []).map(({ type, status: is, reason, message, lastTransitionTime }) => ({
      type,
      is,
      reason: reason ?? '',
      message: message ?? '',
      since: lastTransitionTime === LONG_AGO ? 'before' : 'now',
    })),
  });
}

function node(r: Random, index: number, hasImages: boolean) {
  const config = () => r.pick(['A', 'A', 'B', 'B', 'C', ...(r.chance(0.05) ? [''] : [])]);
  const states = ['Done', 'Done', 'Working', 'Degraded', 'Unreconcilable', 'Rebooting', ''];
  const reasons = ['', 'disk "full"', 'x\ny\t\\', 'ünïcode 🙂', '\u0007bell\u200b', 'a<b>&c'];
  const annotations = {
    ...(r.chance(0.95) && { [`${PREFIX}currentConfig`]: config() }),
    ...(r.chance(0.95) && { [`${PREFIX}desiredConfig`]: config() }),
    ...(r.chance(0.95) && { [`${PREFIX}state`]: r.pick(states) }),
    ...(r.chance(0.4) && { [`${PREFIX}reason`]: r.pick(reasons) }),
    ...(hasImages && r.chance(0.5) && { [`${PREFIX}currentImage`]: r.pick(['i1', 'i2', '']) }),
    ...(hasImages && r.chance(0.5) && { [`${PREFIX}desiredImage`]: r.pick(['i1', 'i2', '']) }),
  };
  return {
    apiVersion: 'v1' as const,
    kind: 'Node' as const,
    metadata: {
      name: `n${index}`,
      ...(r.chance(0.97) && { annotations }),
      labels: { ...(r.chance(0.7) && { 'topology.kubernetes.io/zone': r.pick(['z1', 'z2', 'z10', '']) }) },
      creationTimestamp: `2024-01-0${1 + r.int(9)}T0${r.int(9)}:00:0${index % 10}Z`,
    },
    spec: { ...(r.chance(0.15) && { unschedulable: r.chance(0.8) }) },
    status: {
      conditions: r.some(
        [
          { type: 'Ready', status: r.pick(['True', 'True', 'True', 'True', 'False', 'Unknown']) },
          { type: 'DiskPressure', status: r.pick(['False', 'False', 'False', 'False', 'True', 'Unknown']) },
          { type: 'NetworkUnavailable', status: r.pick(['False', 'False', 'False', 'False', 'True']) },
          { type: 'MemoryPressure', status: 'True' },
        ],
        0.7,
      ),
    },
  };
}

const CONDITIONS = ['Updated', 'Updating', 'NodeDegraded', 'Degraded', 'RenderDegraded', 'PinnedImageSetsDegraded'];
const LIMITS = [1, 2, 3, 5, 0, -1, '10%', '33%', '50%', '100%', '0%', '150%', '-10%'] as const;
const ODD_LIMITS = [
  '60',
  '40 %',
  'abc',
  '%',
  '',
  '1.5%',
  '+20%',
  '٣%',
  '99999999999999999999%',
  '0x10%',
  '1_0%',
  ' 5%',
] as const;

function pool(r: Random, hasImages: boolean) {
  const source = (most: number) => r.list(most, () => ({ kind: 'MachineConfig', name: r.pick(['x', 'y']) }));
  return {
    apiVersion: `${PREFIX}v1`,
    kind: 'MachineConfigPool',
    metadata: {
      name: r.pick(['worker', 'master', 'infra']),
      generation: r.int(5),
      ...(hasImages && r.chance(0.5) && { labels: { [`${PREFIX}layering-enabled`]: '' } }),
      ...(hasImages &&
        r.chance(0.6) && { annotations: { [`${PREFIX}newestImageEquivalentConfig`]: r.pick(['i1', 'i2', '']) } }),
    },
    spec: {
      configuration: {
        name: r.pick(['A', 'A', 'B', 'C', ...(r.chance(0.03) ? [''] : [])]),
        ...(r.chance(0.6) && { source: source(2) }),
      },
      ...(r.chance(0.2) && { paused: r.chance(0.7) }),
      ...(r.chance(0.8) && {
        maxUnavailable: r.pick<number | string>([...LIMITS, ...(r.chance(0.2) ? ODD_LIMITS : [])]),
      }),
    },
    status: {
      ...(r.chance(0.7) && {
        configuration: {
          name: r.pick(['A', 'B']),
          ...(r.chance(0.5) && { source: [{ kind: 'MachineConfig', name: 'x' }] }),
        },
      }),
      conditions: r.some(r.shuffle(CONDITIONS), 0.6).map(type => ({
        type,
        status: r.pick(['True', 'False', 'Unknown']),
        reason: r.pick(['', 'x', '1 nodes are reporting degraded status on sync']),
        message: r.pick([
          '',
          'All nodes are updated with MachineConfig A',
          'All nodes are updating to MachineConfig A',
        ]),
        lastTransitionTime: LONG_AGO,
      })),
    },
  };
}

function controllerConfig(r: Random) {
  return {
    apiVersion: `${PREFIX}v1`,
    kind: 'ControllerConfig',
    metadata: { name: 'machine-config-controller' },
    status: {
      controllerCertificates: r.list(3, () => ({
        subject: `CN=${r.int(4)}`,
        signer: 's',
        bundleFile: r.pick(['KubeAPIServerServingCAData', 'RootCAData']),
        ...(r.chance(0.8) && { notAfter: '2030-01-01T00:00:00Z' }),
      })),
    },
  };
}

export const NODES: readonly Judged[] = [nodes('pools', false), nodes('layered pools', true)];
