import { isRefusing } from '../src/cli/console/model.ts';
import { itemsOf, type Model } from './live.ts';
import type { IconName } from './parts/icon.tsx';
import type { Tone } from './parts/label.tsx';
import { hrefOf } from './route.ts';

/** Something a person should look at. */
export interface Problem {
  readonly id: string;
  readonly tone: Tone;
  readonly icon: IconName;
  readonly what: string;
  readonly text: string;
  readonly href?: string | undefined;
}

const MOST = 200;

/** Everything that is not as it should be, the worst first. */
export function problemsOf(model: Model): Problem[] {
  const problems = [
    ...certificateProblems(model),
    ...operatorProblems(model),
    ...nodeProblems(model),
    ...handshakeProblems(model),
  ];
  const limits = model.about.limits.map(
    (text): Problem => ({ id: `limit ${text}`, tone: 'warn', icon: 'info', what: 'Not shown', text }),
  );
  const rank = ({ tone }: Problem) => ['bad', 'warn', 'info', 'plain', 'good'].indexOf(tone);
  return [...problems, ...limits].sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
}

function certificateProblems(model: Model): Problem[] {
  return [...itemsOf(model, 'certificates'), ...itemsOf(model, 'bundles')].flatMap(item => {
    const { state, role, problem, metadata } = item;
    // What is due is being dealt with by its operator.
    if (state === 'Good' || state === 'Due') return [];
    const { namespace = '', name } = metadata;
    const isBundle = role === 'ca-bundle' || 'keys' in item;
    return [
      {
        id: `${isBundle ? 'bundle' : 'certificate'} ${namespace}/${name}`,
        tone: state === 'Expiring' ? ('warn' as const) : ('bad' as const),
        icon: state === 'Expiring' ? ('clock' as const) : ('error' as const),
        what: state === 'NeedsAttention' ? 'Needs attention' : state,
        text: `${namespace}/${name}: ${problem?.split('\n', 1)[0] ?? ''}`,
        href: hrefOf({ kind: isBundle ? 'ConfigMap' : 'Secret', namespace, name }),
      },
    ];
  });
}

function operatorProblems(model: Model): Problem[] {
  return itemsOf(model, 'operators').flatMap(({ metadata: { name }, conditions }) =>
    conditions
      .filter(
        ({ type, status }) =>
          (type.endsWith('Degraded') && status === 'True') || (type.endsWith('Available') && status === 'False'),
      )
      .map(({ type, message = '' }) => ({
        id: `operator ${name} ${type}`,
        tone: 'bad' as const,
        icon: 'error' as const,
        what: type.endsWith('Degraded') ? 'Degraded' : 'Not available',
        text: `${name}: ${message.split('\n', 1)[0] || type}`,
        href: '#/rollouts',
      })),
  );
}

function nodeProblems(model: Model): Problem[] {
  const nodes = itemsOf(model, 'nodes').flatMap(({ metadata: { name }, ready, machineConfig }): Problem[] => {
    const found: Problem[] = [];
    const href = '#/machine-config';
    if (ready === false)
      found.push({ id: `node ${name}`, tone: 'bad', icon: 'error', what: 'Not ready', text: `node ${name}`, href });
    if (machineConfig?.state === 'Degraded') {
      const text = `node ${name}: ${machineConfig.reason ?? 'its agent gives no reason'}`;
      found.push({ id: `config ${name}`, tone: 'bad', icon: 'error', what: 'Degraded', text, href });
    }
    return found;
  });
  const pools = itemsOf(model, 'pools').flatMap(({ metadata: { name }, degraded, paused, message = '' }): Problem[] => [
    ...(degraded
      ? [
          {
            id: `pool ${name}`,
            tone: 'bad' as const,
            icon: 'error' as const,
            what: 'Degraded',
            text: `pool ${name}: ${message}`,
            href: '#/machine-config',
          },
        ]
      : []),
    ...(paused
      ? [
          {
            id: `paused ${name}`,
            tone: 'warn' as const,
            icon: 'pause' as const,
            what: 'Paused',
            text: `pool ${name}`,
            href: '#/machine-config',
          },
        ]
      : []),
  ]);
  return [...nodes, ...pools];
}

function handshakeProblems(model: Model): Problem[] {
  return itemsOf(model, 'handshakes')
    .filter(isRefusing)
    .map(({ edge, refused, refusals: [first] }) => ({
      id: `handshake ${edge}`,
      tone: 'bad' as const,
      icon: 'error' as const,
      what: 'Refused',
      text: `${edge}: ${refused} times; ${first?.reason ?? ''}`,
      href: '#/graph?view=handshakes',
    }));
}
