import type { PlanChange, PlanEffect, PlanEvent } from '../../src/forecast/model.ts';
import { hrefOf } from '../route.ts';
import type { IconName } from './icon.tsx';
import { Label, type Tone } from './label.tsx';
import { Table } from './table.tsx';
import { Relative, useNow } from './time.tsx';

const CHANGES: Readonly<Record<PlanChange, { icon: IconName; tone: Tone; text: string }>> = {
  signer: { icon: 'key', tone: 'info', text: 'New signer' },
  certificate: { icon: 'leaf', tone: 'info', text: 'New certificate' },
  bundle: { icon: 'bundle', tone: 'info', text: 'Bundle rewritten' },
  'hand-over': { icon: 'moving', tone: 'info', text: 'Hand-over' },
  derived: { icon: 'bundle', tone: 'plain', text: 'Follows' },
  renewal: { icon: 'leaf', tone: 'warn', text: 'Renewal' },
  rollout: { icon: 'moving', tone: 'warn', text: 'Roll-out' },
  reboot: { icon: 'warning', tone: 'warn', text: 'Node update' },
  fail: { icon: 'error', tone: 'bad', text: 'Fails' },
};

export function ChangeLabel({ change }: { change: PlanChange }) {
  const { icon, tone, text } = CHANGES[change];
  return (
    <Label tone={tone} icon={icon}>
      {text}
    </Label>
  );
}

/** What will happen, in order. */
export function PlanTable({
  events,
  caption,
  empty,
}: {
  events: readonly PlanEvent[];
  caption: string;
  empty: string;
}) {
  const now = useNow();
  return (
    <Table
      caption={caption}
      empty={empty}
      items={events.map((event, index) => ({ ...event, index }))}
      id={({ index }) => String(index)}
      columns={[
        { title: 'When', cell: ({ at }) => (Date.parse(at) <= now ? 'at once' : <Relative at={at} now={now} />) },
        { title: 'Change', cell: ({ change }) => <ChangeLabel change={change} /> },
        { title: 'Object', cell: ({ object }) => object && <a href={hrefOf(object)}>{object.name}</a> },
        { title: 'On nodes', cell: ({ effects }) => <Effects effects={effects} /> },
        { title: 'Why', cell: ({ reason }) => reason.split('\n', 1)[0] },
      ]}
    />
  );
}

function Effects({ effects }: { effects: readonly PlanEffect[] }) {
  const texts = [
    ...new Set(effects.map(({ kind, process, nodes }) => `${kind} ${process} on ${nodes.join(', ') || 'no node'}`)),
  ];
  return (
    <>
      {texts.map(text => (
        <div key={text}>{text}</div>
      ))}
    </>
  );
}
