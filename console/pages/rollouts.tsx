import type { NodeItem, RevisionItem } from '../../src/inventory/model.ts';
import { itemsOf, type Model } from '../live.ts';
import { Card, Empty } from '../parts/card.tsx';
import type { IconName } from '../parts/icon.tsx';
import { Label, StandInLabel, type Tone } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import type { PageProps } from './page.ts';

const MOST_REVISIONS = 10;

/** Revisions of the static pods, node by node, as they move. */
export function Rollouts({ model }: PageProps) {
  const operands = [
    ...new Set([
      ...itemsOf(model, 'revisions').map(({ operand }) => operand),
      ...itemsOf(model, 'nodes').flatMap(({ revisions }) => Object.keys(revisions)),
    ]),
  ].sort();
  return (
    <>
      {operands.length === 0 && <Empty>No operator here rolls out static pods.</Empty>}
      {operands.map(operand => (
        <Operand key={operand} operand={operand} model={model} />
      ))}
      <Operators model={model} />
    </>
  );
}

function Operand({ operand, model }: { operand: string; model: Model }) {
  const now = useNow();
  const nodes = itemsOf(model, 'nodes').filter(({ revisions }) => revisions[operand] !== undefined);
  const revisions = itemsOf(model, 'revisions')
    .filter(item => item.operand === operand)
    .toSorted((a, b) => b.revision - a.revision);
  const latest = revisions[0]?.revision ?? 0;
  const there = nodes.filter(({ revisions: own }) => own[operand]?.current === latest).length;
  return (
    <Card
      title={operand}
      wide
      aside={
        <Label tone={there === nodes.length ? 'good' : 'info'} icon={there === nodes.length ? 'ok' : 'moving'}>
          revision {latest} on {there} of {nodes.length} nodes
        </Label>
      }
    >
      <progress max={Math.max(1, nodes.length)} value={there} aria-label={`${operand}: nodes at revision ${latest}`} />
      <div class="grid tight">
        {nodes.map(node => (
          <NodeState key={node.metadata.name} node={node} operand={operand} model={model} />
        ))}
      </div>
      <Table
        caption={`Revisions of ${operand}`}
        empty="There is no revision yet."
        items={revisions.slice(0, MOST_REVISIONS)}
        id={({ revision }) => String(revision)}
        columns={[
          { title: 'Revision', cell: ({ revision }) => String(revision) },
          { title: 'State', cell: ({ state }) => <RevisionLabel state={state} /> },
          {
            title: 'Nodes',
            cell: ({ nodes: on, rollingOutTo }) =>
              [...on, ...rollingOutTo.map(name => `${name} (installing)`)].join(', '),
          },
          { title: 'Age', cell: ({ metadata }) => <Relative at={metadata.creationTimestamp} now={now} /> },
          { title: 'Reason', cell: ({ reason }) => <span class="break">{reason.split('\n', 1)[0]}</span> },
        ]}
      />
    </Card>
  );
}

function NodeState({ node, operand, model }: { node: NodeItem; operand: string; model: Model }) {
  const { current, target } = node.revisions[operand] ?? { current: 0, target: 0 };
  const pod = itemsOf(model, 'pods').find(item => item.operand === operand && item.node === node.metadata.name);
  const isMoving = target > current;
  return (
    <div class="node-state">
      <strong>{node.metadata.name}</strong>
      <span class="revision">{isMoving ? `${current} → ${target}` : current}</span>
      {isMoving ? (
        <Label tone="info" icon="moving">
          Installing
        </Label>
      ) : (
        <Label tone={pod?.ready ? 'good' : 'warn'} icon={pod?.ready ? 'ok' : 'clock'}>
          {pod === undefined ? 'No pod' : pod.ready ? 'Ready' : pod.phase}
        </Label>
      )}
      {pod?.standIn && <StandInLabel />}
      {pod !== undefined && pod.restarts > 0 && <span class="sub">{pod.restarts} restarts</span>}
    </div>
  );
}

const REVISION_LABELS: Readonly<Record<RevisionItem['state'], { tone: Tone; icon: IconName; text: string }>> = {
  Building: { tone: 'info', icon: 'clock', text: 'Being made' },
  RollingOut: { tone: 'info', icon: 'moving', text: 'Rolling out' },
  Current: { tone: 'good', icon: 'ok', text: 'Current' },
  Kept: { tone: 'plain', icon: 'none', text: 'Kept' },
};

function RevisionLabel({ state }: { state: RevisionItem['state'] }) {
  const { tone, icon, text } = REVISION_LABELS[state];
  return (
    <Label tone={tone} icon={icon}>
      {text}
    </Label>
  );
}

function Operators({ model }: { model: Model }) {
  const now = useNow();
  const operators = itemsOf(model, 'operators');
  const find = (conditions: (typeof operators)[number]['conditions'], type: string) =>
    conditions.find(condition => condition.type === type) ??
    conditions.find(condition => condition.type.endsWith(type) && condition.status !== 'False');
  return (
    <Card title="Operators" wide>
      <Table
        caption="Operators and their conditions"
        empty="No operator reports here."
        items={operators}
        id={({ metadata }) => metadata.name}
        columns={[
          { title: 'Name', cell: ({ metadata }) => metadata.name },
          ...(['Available', 'Progressing', 'Degraded'] as const).map(type => ({
            title: type,
            cell: ({ conditions }: (typeof operators)[number]) => {
              const status = find(conditions, type)?.status ?? (type === 'Available' ? 'Unknown' : 'False');
              const isGood = status === (type === 'Available' ? 'True' : 'False');
              const tone: Tone = isGood
                ? 'good'
                : status === 'Unknown'
                  ? 'plain'
                  : type === 'Progressing'
                    ? 'info'
                    : 'bad';
              return (
                <Label
                  tone={tone}
                  icon={isGood ? 'ok' : status === 'Unknown' ? 'none' : type === 'Progressing' ? 'moving' : 'error'}
                >
                  {status}
                </Label>
              );
            },
          })),
          {
            title: 'Message',
            cell: ({ conditions }) => {
              const told = (['Degraded', 'Progressing', 'Available'] as const)
                .map(type => find(conditions, type))
                .find(found => found?.message);
              return <span class="break">{told?.message?.split('\n', 1)[0]}</span>;
            },
          },
          {
            title: 'Since',
            cell: ({ conditions }) => (
              <Relative
                at={conditions
                  .map(({ lastTransitionTime = '' }) => lastTransitionTime)
                  .sort()
                  .at(-1)}
                now={now}
              />
            ),
          },
        ]}
      />
    </Card>
  );
}
