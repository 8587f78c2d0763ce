import { useEffect, useState } from 'preact/hooks';
import {
  type About,
  idOf,
  type Patch,
  SECTIONS,
  type Section,
  type Sections,
  type SessionInfo,
  type Snapshot,
} from '../src/cli/console/model.ts';
import type { Inventory } from '../src/inventory/model.ts';
import type { TrustGraph } from '../src/trust/graph.ts';
import { currentSession, getJson } from './request.ts';

/** The cluster as this page knows it, kept up to date by the stream. */
export interface Model {
  readonly about: About;
  readonly trust: TrustGraph;
  readonly sections: { readonly [S in Section]: ReadonlyMap<string, Sections[S]> };
}

export interface State {
  /** Undefined: nobody is logged in; absent: not known yet. */
  readonly session?: SessionInfo | undefined;
  readonly isAsked: boolean;
  readonly connection: 'connecting' | 'live' | 'lost';
  readonly model?: Model | undefined;
  readonly problem?: string | undefined;
}

const RETRY_MS = 3000;
/** A page nobody looks at gives its connection back: browsers have only a few for each server. */
const HIDDEN_MS = 30_000;

let state: State = { isAsked: false, connection: 'connecting' };
let stream: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
/** How far the clock of the server is ahead of ours. */
let aheadMs = 0;
const listeners = new Set<() => void>();

export function useLive(): State {
  const [seen, setSeen] = useState(state);
  useEffect(() => {
    const listener = () => setSeen(state);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return seen;
}

/** The time at the server. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}

/** Finds out who is logged in, and listens if somebody is. */
export async function begin(): Promise<void> {
  try {
    const session = await currentSession();
    change({ session, isAsked: true, problem: undefined });
    if (session === undefined) end();
    else await listen();
  } catch (error) {
    change({ isAsked: true, connection: 'lost', problem: (error as Error).message });
    later();
  }
}

/** Stops listening while the page is out of sight for longer, and goes on when it is looked at again. */
export function followVisibility(): void {
  let hiding: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding);
    if (document.visibilityState === 'visible') {
      if (stream?.readyState === EventSource.CLOSED) void begin();
    } else {
      hiding = setTimeout(() => {
        stream?.close();
        clearTimeout(retry);
      }, HIDDEN_MS);
    }
  });
}

/** Stops listening and forgets what was heard. */
export function end(): void {
  stream?.close();
  stream = undefined;
  clearTimeout(retry);
  change({ session: undefined, model: undefined, connection: 'connecting' });
}

async function listen(): Promise<void> {
  const trust = state.model?.trust ?? (await getJson<TrustGraph>('api/trust'));
  stream?.close();
  stream = new EventSource('api/live');
  stream.addEventListener('snapshot', event => {
    const { now, about, sections } = JSON.parse((event as MessageEvent<string>).data) as Snapshot;
    aheadMs = Date.parse(now) - Date.now();
    const maps = Object.fromEntries(
      SECTIONS.map(section => [section, new Map(sections[section].map(item => [idOf(item), item]))]),
    ) as unknown as Model['sections'];
    change({ connection: 'live', problem: undefined, model: { about, trust, sections: maps } });
  });
  stream.addEventListener('patch', event => {
    const patch = JSON.parse((event as MessageEvent<string>).data) as Patch;
    aheadMs = Date.parse(patch.now) - Date.now();
    if (state.model !== undefined) change({ connection: 'live', model: patched(state.model, patch) });
  });
  stream.addEventListener('open', () => change({ connection: state.model === undefined ? 'connecting' : 'live' }));
  stream.addEventListener('error', () => {
    change({ connection: 'lost' });
    // The browser connects again by itself unless it was turned away: then ask whether we are still known.
    if (stream?.readyState === EventSource.CLOSED) later();
  });
}

function later(): void {
  clearTimeout(retry);
  retry = setTimeout(() => void begin(), RETRY_MS);
}

function patched(model: Model, { about, set, gone }: Patch): Model {
  const sections: Record<string, ReadonlyMap<string, unknown>> = { ...model.sections };
  for (const section of SECTIONS) {
    const [fresh, lost] = [set[section], gone[section]];
    if (fresh === undefined && lost === undefined) continue;
    const items = new Map<string, unknown>(model.sections[section]);
    for (const id of lost ?? []) items.delete(id);
    for (const item of fresh ?? []) items.set(idOf(item), item);
    sections[section] = items;
  }
  return { ...model, about: about ?? model.about, sections: sections as unknown as Model['sections'] };
}

function change(news: Partial<State>): void {
  state = { ...state, ...news };
  for (const listener of listeners) listener();
}

export function itemsOf<S extends Section>({ sections }: Model, section: S): Sections[S][] {
  return [...sections[section].values()] as Sections[S][];
}

/** The part of the model that the functions of the command line work on. */
export function inventoryOf(model: Model): Inventory {
  return {
    now: new Date(serverNow()).toISOString(),
    certificates: itemsOf(model, 'certificates'),
    bundles: itemsOf(model, 'bundles'),
    nodes: itemsOf(model, 'nodes'),
    revisions: itemsOf(model, 'revisions'),
    pools: itemsOf(model, 'pools'),
  };
}
