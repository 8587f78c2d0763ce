import type { NodeItem, PoolItem } from '../../src/inventory/model.ts';
import { itemsOf } from '../live.ts';
import { Card } from '../parts/card.tsx';
import { Label } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import type { PageProps } from './page.ts';

/** Pools of nodes, and how far the configuration of each node is. */
export function MachineConfig({ model, onAct }: PageProps) {
  const pools = itemsOf(model, 'pools');
  const nodes = itemsOf(model, 'nodes');
  return (
    <>
      <Card title="Pools" wide>
        <Table
          caption="Machine config pools"
          empty="This cluster has no machine config pools, or you may not see them."
          items={pools}
          id={({ metadata }) => metadata.name}
          sortedBy="Name"
          columns={[
            { title: 'Name', sort: ({ metadata }) => metadata.name, cell: ({ metadata }) => metadata.name },
            { title: 'State', cell: pool => <PoolLabel pool={pool} /> },
            { title: 'Configuration', cell: ({ configuration }) => <span class="break">{configuration}</span> },
            {
              title: 'Machines',
              cell: ({ updatedCount, machineCount, readyCount }) => (
                <>
                  <progress max={Math.max(1, machineCount)} value={updatedCount} aria-label="machines updated" />{' '}
                  {updatedCount} of {machineCount} updated, {readyCount} ready
                </>
              ),
            },
            { title: 'Message', cell: ({ message }) => <span class="break">{message}</span> },
            {
              title: 'Action',
              cell: ({ paused, metadata: { name } }) => (
                <button type="button" onClick={() => onAct({ kind: paused ? 'resume' : 'pause', pool: name })}>
                  {paused ? 'Resume' : 'Pause'} {name}
                </button>
              ),
            },
          ]}
        />
      </Card>
      <Card title="Nodes" wide>
        <Table
          caption="Nodes"
          empty="There are no nodes, or you may not see them."
          items={nodes}
          id={({ metadata }) => metadata.name}
          sortedBy="Name"
          columns={[
            {
              title: 'Name',
              sort: ({ metadata }) => metadata.name,
              cell: ({ metadata, addresses }) => (
                <>
                  {metadata.name}
                  <div class="sub">{addresses.join(', ')}</div>
                </>
              ),
            },
            { title: 'Status', cell: node => <NodeLabel node={node} /> },
            { title: 'Roles', cell: ({ roles }) => roles.join(', ') },
            {
              title: 'Agent',
              sort: ({ machineConfig }) => machineConfig?.state ?? '',
              cell: node => <AgentLabel node={node} />,
            },
            { title: 'Current', cell: ({ machineConfig }) => <span class="break">{machineConfig?.current}</span> },
            {
              title: 'Wanted',
              cell: ({ machineConfig }) => (
                <span class="break">
                  {machineConfig?.desired === machineConfig?.current ? 'the same' : machineConfig?.desired}
                </span>
              ),
            },
            { title: 'Reason', cell: ({ machineConfig }) => <span class="break">{machineConfig?.reason}</span> },
          ]}
        />
      </Card>
    </>
  );
}

function PoolLabel({ pool: { degraded, updating, updated, paused } }: { pool: PoolItem }) {
  return (
    <>
      {degraded ? (
        <Label tone="bad" icon="error">
          Degraded
        </Label>
      ) : updating ? (
        <Label tone="info" icon="moving">
          Updating
        </Label>
      ) : updated ? (
        <Label tone="good" icon="ok">
          Updated
        </Label>
      ) : (
        <Label tone="plain" icon="none">
          Unknown
        </Label>
      )}{' '}
      {paused && (
        <Label tone="warn" icon="pause">
          Paused
        </Label>
      )}
    </>
  );
}

function NodeLabel({ node: { ready, unschedulable } }: { node: NodeItem }) {
  return (
    <>
      {ready === undefined ? (
        <Label tone="plain" icon="none">
          Unknown
        </Label>
      ) : ready ? (
        <Label tone="good" icon="ok">
          Ready
        </Label>
      ) : (
        <Label tone="bad" icon="error">
          Not ready
        </Label>
      )}{' '}
      {unschedulable && (
        <Label tone="warn" icon="pause">
          Cordoned
        </Label>
      )}
    </>
  );
}

function AgentLabel({ node: { machineConfig } }: { node: NodeItem }) {
  const state = machineConfig?.state ?? '';
  if (state === '') return <span class="sub">no agent</span>;
  const tone = state === 'Done' ? 'good' : state === 'Degraded' || state === 'Unreconcilable' ? 'bad' : 'info';
  return (
    <Label tone={tone} icon={tone === 'good' ? 'ok' : tone === 'bad' ? 'error' : 'moving'}>
      {state}
    </Label>
  );
}
