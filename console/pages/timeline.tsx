import { useEffect, useRef, useState } from 'preact/hooks';
import type { Plan, PlanChange, PlanEvent } from '../../src/forecast/model.ts';
import { itemsOf, type Model, serverNow } from '../live.ts';
import { Card, Empty } from '../parts/card.tsx';
import { Select, Toolbar } from '../parts/filter.tsx';
import { Icon } from '../parts/icon.tsx';
import { Label } from '../parts/label.tsx';
import { PlanTable } from '../parts/plan-table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import { getJson } from '../request.ts';
import type { PageProps } from './page.ts';

const MOST_PAST = 100;
/** A new plan is asked for so long after a change, so that a swarm of changes makes one. */
const SETTLE_MS = 1500;

interface Past {
  readonly id: string;
  readonly at: string;
  readonly change: PlanChange;
  readonly text: string;
}

/** What was rotated and what will be. */
export function Timeline({ model }: PageProps) {
  const now = useNow();
  const [days, setDays] = useState('30');
  const { plan, problem } = usePlan(model, days);
  const past = pastOf(model);
  return (
    <>
      <Toolbar>
        <Select
          label="Look ahead"
          value={days}
          onChange={setDays}
          options={['7', '30', '90', '365'].map(count => [count, `${count} rotation days`] as const)}
        />
      </Toolbar>
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          <Icon name="error" /> {problem}
        </p>
      )}
      <Strip past={past} plan={plan} now={now} />
      <Card title="Planned" wide>
        {plan === undefined ? (
          <p role="status">Running the rotation rules ahead of time</p>
        ) : (
          <>
            {plan.warnings.map(({ at, name, renewWith }) => (
              <p key={`${name} ${at}`} class="notice warn">
                <Icon name="warning" /> {name} ends <Relative at={at} now={now} />, and no controller renews it:{' '}
                {renewWith}
              </p>
            ))}
            <p class="count">{summaryOf(plan.events)}</p>
            <PlanTable events={plan.events} caption="Planned rotations" empty="Nothing will rotate in this time." />
            {plan.notes.map(note => (
              <p key={note} class="hint">
                {note}
              </p>
            ))}
          </>
        )}
      </Card>
      <Card title="Past" wide>
        {past.length === 0 ? (
          <Empty>Nothing is known of the past.</Empty>
        ) : (
          <ol class="feed">
            {past.map(({ id, at, text }) => (
              <li key={id}>
                <Relative at={at} now={now} /> <span class="break">{text}</span>
              </li>
            ))}
          </ol>
        )}
      </Card>
    </>
  );
}

/** One question at a time: what changes while it is being answered leads to the next one. */
function usePlan(model: Model, days: string): { plan: Plan | undefined; problem: string | undefined } {
  const [plan, setPlan] = useState<Plan>();
  const [problem, setProblem] = useState<string>();
  const asking = useRef({ isRunning: false, isStale: false, days, timer: 0 });
  const { certificates, pools } = model.sections;
  const ask = () => {
    const state = asking.current;
    state.isRunning = true;
    state.isStale = false;
    const asked = state.days;
    getJson<Plan>(`api/plan?days=${asked}`)
      .then(found => {
        if (asked === state.days) setPlan(found);
        setProblem(undefined);
      })
      .catch((error: unknown) => setProblem((error as Error).message))
      .finally(() => {
        state.isRunning = false;
        if (state.isStale) state.timer = setTimeout(ask, SETTLE_MS);
      });
  };
  useEffect(() => {
    const state = asking.current;
    if (state.days !== days) setPlan(undefined);
    state.days = days;
    if (state.isRunning) state.isStale = true;
    else {
      clearTimeout(state.timer);
      ask();
    }
  }, [certificates, pools, days]);
  useEffect(
    () => () => {
      asking.current.isStale = false;
      clearTimeout(asking.current.timer);
    },
    [],
  );
  return { plan, problem };
}

const ROTATION_REASONS: Readonly<Record<string, PlanChange>> = {
  SignerUpdateRequired: 'signer',
  TargetUpdateRequired: 'certificate',
  CABundleUpdateRequired: 'bundle',
  SignerInUseChanged: 'hand-over',
  RevisionCreate: 'rollout',
  RevisionTriggered: 'rollout',
};

function pastOf(model: Model): Past[] {
  const events = itemsOf(model, 'events').flatMap(({ metadata, reason, message, lastAt }): Past[] => {
    const change = Object.hasOwn(ROTATION_REASONS, reason) ? ROTATION_REASONS[reason] : undefined;
    return change === undefined
      ? []
      : [{ id: `event ${metadata.namespace}/${metadata.name}`, at: lastAt, change, text: message }];
  });
  const births = itemsOf(model, 'certificates').flatMap(({ metadata, role, certificate }): Past[] => {
    if (certificate === undefined || role === 'unmanaged') return [];
    const text = `${metadata.namespace}/${metadata.name}: the certificate in use is valid from here`;
    return [
      {
        id: `birth ${metadata.namespace}/${metadata.name}`,
        at: certificate.notBefore,
        change: role === 'signer' ? 'signer' : 'certificate',
        text,
      },
    ];
  });
  return [...events, ...births]
    .filter(({ at }) => at !== '' && Date.parse(at) <= serverNow())
    .sort((a, b) => (a.at < b.at ? 1 : -1))
    .slice(0, MOST_PAST);
}

const STRIP = { width: 1000, height: 92, left: 8, right: 992 };
const LANES: readonly (readonly [PlanChange, string])[] = [
  ['signer', 'signers'],
  ['certificate', 'certificates'],
  ['bundle', 'bundles'],
  ['rollout', 'roll-outs'],
];

/** All of it at a glance; the lists below say it in words. */
function Strip({ past, plan, now }: { past: readonly Past[]; plan: Plan | undefined; now: number }) {
  const until = plan === undefined ? now + 1 : Date.parse(plan.to);
  const spanMs = Math.max(1, until - now);
  // As much room for the past as for a third of what is to come.
  const from = now - spanMs / 3;
  const x = (at: number) => STRIP.left + ((at - from) / (until - from)) * (STRIP.right - STRIP.left);
  const marks = [
    ...past.map(({ at, change }) => ({ at: Date.parse(at), change })),
    ...(plan?.events ?? []).map(({ at, change }) => ({ at: Date.parse(at), change })),
  ];
  const lane = (change: PlanChange) => LANES.findIndex(([name]) => name === change);
  const isIn = ({ at, change }: { at: number; change: PlanChange }) => at >= from && at <= until && lane(change) >= 0;
  // Marks on one spot are one mark.
  const visible = [
    ...new Map(
      marks.filter(isIn).map(({ at, change }) => [`${Math.round(x(at))} ${lane(change)}`, { at, change }]),
    ).values(),
  ];
  return (
    <figure class="strip">
      <svg
        viewBox={`0 0 ${STRIP.width} ${STRIP.height}`}
        role="img"
        aria-label={`${past.length} past and ${plan?.events.length ?? 0} planned changes; listed below`}
      >
        {LANES.map(([name, title], index) => (
          <g key={name}>
            <line x1={STRIP.left} x2={STRIP.right} y1={18 + index * 20} y2={18 + index * 20} class="lane" />
            <text x={STRIP.left} y={14 + index * 20} class="lane-title">
              {title}
            </text>
          </g>
        ))}
        {visible.map(({ at, change }) => (
          <circle
            key={`${change} ${at}`}
            cx={x(at)}
            cy={18 + lane(change) * 20}
            r={4}
            class={`mark ${change}${at > now ? ' planned' : ''}`}
          />
        ))}
        <line x1={x(now)} x2={x(now)} y1={4} y2={STRIP.height - 4} class="now" />
        <text x={x(now) + 4} y={STRIP.height - 4} class="lane-title">
          now
        </text>
      </svg>
      <figcaption>
        <Label tone="plain" icon="ok">
          past: filled
        </Label>{' '}
        <Label tone="plain" icon="clock">
          planned: hollow
        </Label>
      </figcaption>
    </figure>
  );
}

function summaryOf(events: readonly PlanEvent[]): string {
  const count = (wanted: PlanChange) => events.filter(({ change }) => change === wanted).length;
  return `${count('signer')} signers, ${count('certificate')} certificates, ${count('rollout')} roll-outs, ${count('reboot')} node updates`;
}
