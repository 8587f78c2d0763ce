import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { membershipOf } from '../../../src/machine-config/pool/membership.ts';
import type { MachineConfigPool } from '../../../src/machine-config-api/machine-config.ts';
import { attempt, plain, unlike } from '../difference.ts';
import { judged } from '../judged.ts';
import type { Random } from '../random.ts';

const ROLE = 'node-role.kubernetes.io/';

interface Input {
  Pools: { metadata: { name: string }; spec: object }[];
  Nodes: { metadata: { name: string; labels: object } }[];
}

/** Which pools a node belongs to. */
export const MEMBERSHIP = judged<Input>({
  name: 'pools of a node',
  program: 'mcodiff',
  op: 'pools',
  generate: r => ({
    Pools: r.some(['master', 'worker', 'infra', 'x'], 0.8).map(name => {
      const nodeSelector = selector(r, ROLE + name);
      return { metadata: { name }, spec: { ...(nodeSelector !== undefined && { nodeSelector }) } };
    }),
    Nodes: r.times(4, index => ({ metadata: { name: `n${index}`, labels: labels(r) } })),
  }),
  compare: ({ Pools, Nodes }, { out, err }) => {
    if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
    const answers = out as Record<string, { pools: string[]; metric: number; err: string }>;
    return Nodes.flatMap(node => {
      const mine = attempt(() => membershipOf(node as Node, Pools as unknown as MachineConfigPool[]));
      const membership =
        mine.kind !== 'value'
          ? mine.error
          : mine.value.kind === 'member'
            ? { pools: mine.value.pools, metric: mine.value.alert }
            : mine.value.kind;
      const { pools, metric, err: refusal } = answers[node.metadata.name]!;
      const theirs =
        refusal === ''
          ? pools.length === 0
            ? 'unmanaged'
            : { pools, metric }
          : refusal.includes('custom roles')
            ? 'contradictory'
            : `error ${refusal}`;
      const word = (value: unknown) => (typeof value === 'string' ? plain(value) : 'member');
      return unlike(`mine ${word(membership)}, theirs ${word(theirs)}`, membership, theirs);
    });
  },
});

function labels(r: Random): object {
  const keys = ['worker', 'master', 'infra', 'x'].map(role => ROLE + role);
  return {
    ...Object.fromEntries(r.some([...keys, 'a', 'b'], 0.4).map(key => [key, r.pick(['', '', '1', '2'])])),
    ...(r.chance(0.3) && { 'kubernetes.io/os': r.pick(['linux', 'windows', 'Windows']) }),
  };
}

function selector(r: Random, main: string): object | undefined {
  const byLabel = { matchLabels: { [main]: '' } };
  const odd = [
    { matchExpressions: [{ key: 'a', operator: r.pick(['Bad', 'Exists']), values: ['x'] }] },
    { matchLabels: { 'bad key!': '' } },
    { matchLabels: { a: 'bad value!' } },
    { matchLabels: null, matchExpressions: [] },
  ];
  return r.pick<object | undefined>([
    byLabel,
    byLabel,
    byLabel,
    { matchExpressions: [{ key: main, operator: 'Exists' }] },
    {
      matchExpressions: [
        {
          key: r.pick(['a', main]),
          operator: r.pick(['In', 'NotIn']),
          values: [...r.some(['', '1', '2']), ...(r.chance(0.98) ? ['3'] : [])],
        },
      ],
    },
    { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }], ...byLabel },
    {},
    undefined,
    ...(r.chance(0.1) ? odd : []),
  ]);
}
