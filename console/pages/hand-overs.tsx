import { handOverSummary, isUnderWay, loadedText, PHASE_RULES } from '../../src/cli/hand-overs/words.ts';
import type { HandOverItem, HandOverPhase, NodeItem, ReceiptItem } from '../../src/inventory/model.ts';
import type { AskFor } from '../action.tsx';
import { itemsOf } from '../live.ts';
import { Card } from '../parts/card.tsx';
import type { IconName } from '../parts/icon.tsx';
import { Label, type Tone } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Moment, Relative, useNow } from '../parts/time.tsx';
import { hrefOf } from '../route.ts';
import type { PageProps } from './page.ts';

/** Where the hand-over of every signer stands: who has loaded the next one, by which evidence, and who is waited for since when. */
export function HandOvers({ model, onAct }: PageProps) {
  const items = itemsOf(model, 'handOvers');
  const summary = handOverSummary(items);
  const underWay = items.filter(isUnderWay);
  const waived = itemsOf(model, 'nodes').filter(({ isWaived }) => isWaived);
  return (
    <>
      <p role="status">{items.length === 0 ? 'No signer that is handed over is seen here.' : `${summary.first}.`}</p>
      {underWay.map(item => (
        <UnderWay key={item.metadata.name} item={item} onAct={onAct} />
      ))}
      {waived.length > 0 && <Waived nodes={waived} onAct={onAct} />}
      {items.length > 0 && <Signers items={items} onAct={onAct} />}
      {summary.last !== '' &&
        summary.last.split('\n').map(line => (
          <p key={line} class="sub">
            {line}
          </p>
        ))}
    </>
  );
}

function UnderWay({ item, onAct }: { item: HandOverItem; onAct: AskFor }) {
  const now = useNow();
  const { phase, since, because, next, waitsUntil, receipts, presenters } = item;
  const { name } = item.metadata;
  return (
    <Card
      title={name}
      wide
      aside={
        <>
          <PhaseLabel phase={phase} />
          {isTakenBack(item) && <TakeBack item={item} onAct={onAct} />}
        </>
      }
    >
      <p>
        {because.charAt(0).toUpperCase() + because.slice(1)}.{' '}
        {since !== undefined && (
          <>
            Begun <Relative at={since} now={now} />.{' '}
          </>
        )}
        {next !== undefined && <>“{next}” signs nothing yet. </>}
        It goes on when {PHASE_RULES[phase].goesOn}
        {waitsUntil !== undefined && (
          <>
            , at the latest at <Moment at={waitsUntil} />
          </>
        )}
        .
      </p>
      {(receipts.length > 0 || presenters.length === 0) && (
        <Answers
          what="Verifier"
          caption={`Who verifies what ${name} signs`}
          items={receipts}
          since={since}
          onAct={onAct}
        />
      )}
      {presenters.length > 0 && (
        <Answers
          what="Presenter"
          caption={`Who shows what ${name} signs`}
          items={presenters}
          since={since}
          onAct={onAct}
        />
      )}
    </Card>
  );
}

interface AnswersProps {
  what: 'Verifier' | 'Presenter';
  caption: string;
  items: readonly ReceiptItem[];
  since: string | undefined;
  onAct: AskFor;
}

/** Who has answered, by which evidence, and who is waited for. */
function Answers({ what, caption, items, since, onAct }: AnswersProps) {
  const now = useNow();
  return (
    <Table
      caption={caption}
      empty="Nobody has been asked yet."
      items={items.toSorted((a, b) => Number(a.isLoaded) - Number(b.isLoaded))}
      id={({ verifier }) => verifier}
      columns={[
        { title: what, cell: ({ verifier }) => verifier },
        {
          title: 'State',
          cell: receipt => <ReceiptLabel receipt={receipt} done={what === 'Verifier' ? 'Loaded' : 'Shown'} />,
        },
        { title: 'Evidence', cell: ({ kind }) => kind },
        { title: 'Said', cell: ({ evidence }) => <span class="break">{evidence}</span> },
        {
          title: 'Waiting',
          cell: ({ isLoaded, isWaived }) => (isLoaded || isWaived ? '-' : <Relative at={since} now={now} />),
        },
        {
          title: 'Action',
          cell: ({ node, isLoaded, isWaived }) =>
            node !== undefined && !isLoaded && !isWaived ? (
              <button type="button" onClick={() => onAct({ kind: 'waive', node })}>
                Waive {node}
              </button>
            ) : (
              '-'
            ),
        },
      ]}
    />
  );
}

function Waived({ nodes, onAct }: { nodes: readonly NodeItem[]; onAct: AskFor }) {
  return (
    <Card title="Nodes that nobody waits for" wide>
      <Table
        caption="Nodes that nobody waits for"
        empty="There is none."
        items={nodes}
        id={({ metadata }) => metadata.name}
        columns={[
          { title: 'Node', cell: ({ metadata }) => metadata.name },
          { title: 'Until', cell: () => 'it becomes ready the next time' },
          {
            title: 'Action',
            cell: ({ metadata: { name } }) => (
              <button type="button" onClick={() => onAct({ kind: 'count', node: name })}>
                Wait for {name} again
              </button>
            ),
          },
        ]}
      />
    </Card>
  );
}

function Signers({ items, onAct }: { items: readonly HandOverItem[]; onAct: AskFor }) {
  const now = useNow();
  return (
    <Card title="All signers" wide>
      <Table
        caption="Signers and the phase of their hand-over"
        empty="There is no signer."
        items={items}
        id={({ metadata }) => `${metadata.namespace}/${metadata.name}`}
        sortedBy="Signer"
        columns={[
          {
            title: 'Signer',
            sort: ({ metadata }) => metadata.name,
            cell: ({ metadata: { namespace = '', name } }) => (
              <a href={hrefOf({ kind: 'Secret', namespace, name })}>{name}</a>
            ),
          },
          { title: 'Phase', sort: ({ phase }) => phase, cell: ({ phase }) => <PhaseLabel phase={phase} /> },
          { title: 'Since', cell: ({ since }) => <Relative at={since} now={now} /> },
          { title: 'Loaded by', cell: item => loadedText(item) || '-' },
          { title: 'Why', cell: ({ because }) => <span class="break">{because}</span> },
          {
            title: 'Asks',
            cell: ({ asks }) => [...new Set(asks.map(({ process }) => process))].join(', ') || 'nobody',
          },
          {
            title: 'Not counted',
            cell: ({ notCounted }) => notCounted.map(({ process }) => process).join(', ') || '-',
          },
          {
            title: 'Action',
            cell: item =>
              item.phase === 'Retiring' && item.operator !== 'etcd' ? <TakeBack item={item} onAct={onAct} /> : '-',
          },
        ]}
      />
    </Card>
  );
}

/** The button is there where there is something to take back; whether it can be is said by its dialog. */
function isTakenBack({ phase, next, operator }: HandOverItem): boolean {
  return operator !== 'etcd' && (phase === 'Signing' || next !== undefined);
}

function TakeBack({ item: { metadata }, onAct }: { item: HandOverItem; onAct: AskFor }) {
  const { namespace = '', name } = metadata;
  return (
    <button type="button" onClick={() => onAct({ kind: 'take-back', object: { kind: 'Secret', namespace, name } })}>
      Take back {name}
    </button>
  );
}

const PHASES: Readonly<Record<HandOverPhase, { tone: Tone; icon: IconName }>> = {
  Steady: { tone: 'good', icon: 'ok' },
  Distributing: { tone: 'info', icon: 'moving' },
  Signing: { tone: 'info', icon: 'moving' },
  Retiring: { tone: 'plain', icon: 'clock' },
};

function PhaseLabel({ phase }: { phase: HandOverPhase }) {
  return <Label {...PHASES[phase]}>{phase}</Label>;
}

function ReceiptLabel({ receipt: { isLoaded, isWaived }, done }: { receipt: ReceiptItem; done: string }) {
  if (isLoaded) {
    return (
      <Label tone="good" icon="ok">
        {done}
      </Label>
    );
  }
  return isWaived ? (
    <Label tone="warn" icon="pause">
      Waived
    </Label>
  ) : (
    <Label tone="warn" icon="clock">
      Missing
    </Label>
  );
}
