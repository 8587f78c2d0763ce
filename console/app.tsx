import { useEffect, useRef, useState } from 'preact/hooks';
import type { Action } from '../src/cli/console/model.ts';
import { ActionDialog, type AskFor } from './action.tsx';
import { end, type State, useLive } from './live.ts';
import { Login } from './login.tsx';
import { Certificate } from './pages/certificate.tsx';
import { Certificates } from './pages/certificates.tsx';
import { Events } from './pages/events.tsx';
import { Graph } from './pages/graph.tsx';
import { HandOvers } from './pages/hand-overs.tsx';
import { MachineConfig } from './pages/machine-config.tsx';
import { Overview } from './pages/overview.tsx';
import type { PageProps } from './pages/page.ts';
import { Rollouts } from './pages/rollouts.tsx';
import { Timeline } from './pages/timeline.tsx';
import { Icon } from './parts/icon.tsx';
import { Label } from './parts/label.tsx';
import { postJson } from './request.ts';
import { type Route, useRoute } from './route.ts';
import { useTheme } from './theme.ts';

const PAGES = [
  { path: '', title: 'Overview', Page: Overview },
  { path: 'certificates', title: 'Certificates', Page: Certificates },
  { path: 'graph', title: 'Trust graph', Page: Graph },
  { path: 'hand-overs', title: 'Hand-overs', Page: HandOvers },
  { path: 'rollouts', title: 'Rollouts', Page: Rollouts },
  { path: 'machine-config', title: 'Machine config', Page: MachineConfig },
  { path: 'timeline', title: 'Timeline', Page: Timeline },
  { path: 'events', title: 'Events', Page: Events },
] as const;

/** The whole page: who is there decides what is shown. */
export function App({ loginFailure }: { loginFailure?: string | undefined }) {
  const state = useLive();
  if (!state.isAsked) return <p class="loading">Loading</p>;
  if (state.session === undefined && state.problem === undefined) return <Login failure={loginFailure} />;
  return <Shell state={state} />;
}

function Shell({ state }: { state: State }) {
  const route = useRoute();
  const { path } = route;
  const current = PAGES.find(page => page.path === (path[0] ?? ''));
  const title = path[0] === 'certificates' && path.length === 4 ? (path[3] ?? '') : (current?.title ?? 'Not found');
  const [isNavOpen, setNavOpen] = useState(false);
  const [action, setAction] = useState<Action>();
  const [news, setNews] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const place = path.join('/');
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} - Rotunda`;
    setNavOpen(false);
    // A reader of the screen starts at the heading of the new page; at the first one the browser knows best.
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [place]);
  const skip = (event: Event) => {
    event.preventDefault();
    heading.current?.focus();
  };
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skip}>
        Skip to content
      </a>
      <Masthead state={state} isNavOpen={isNavOpen} onNav={() => setNavOpen(!isNavOpen)} />
      <nav class={`nav${isNavOpen ? ' open' : ''}`} id="nav" aria-label="Pages">
        <ul>
          {PAGES.map(page => (
            <li key={page.path}>
              <a href={`#/${page.path}`} {...(page === current ? { 'aria-current': 'page' as const } : {})}>
                {page.title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main class="content" id="content">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <p class="visually-hidden" role="status">
          {news}
        </p>
        {news !== '' && (
          <p class="notice good">
            <Icon name="ok" /> {news}{' '}
            <button type="button" class="link" onClick={() => setNews('')}>
              Dismiss
            </button>
          </p>
        )}
        <Content state={state} route={route} onAct={setAction} />
      </main>
      {action !== undefined && <ActionDialog action={action} onClose={() => setAction(undefined)} onDone={setNews} />}
    </div>
  );
}

function Content({ state, route, onAct }: { state: State; route: Route; onAct: AskFor }) {
  const { model, problem } = state;
  if (model === undefined) {
    return problem === undefined ? (
      <p class="loading" role="status">
        Reading the cluster
      </p>
    ) : (
      <p class="notice bad" role="alert">
        <Icon name="error" /> {problem}; trying again
      </p>
    );
  }
  const props: PageProps = { model, route, onAct };
  const [first = '', ...rest] = route.path;
  if (first === 'certificates' && rest.length === 3) return <Certificate key={rest.join('/')} {...props} />;
  const found = PAGES.find(({ path }) => path === first);
  if (found === undefined) return <p class="empty">There is no such page.</p>;
  // Another query is another question: filters start from it.
  return <found.Page key={`${first}?${route.query}`} {...props} />;
}

function Masthead({ state, isNavOpen, onNav }: { state: State; isNavOpen: boolean; onNav: () => void }) {
  const [theme, turnTheme] = useTheme();
  const { session, connection, model } = state;
  const logOut = async () => {
    await postJson('api/logout', {}).catch(() => {});
    end();
  };
  return (
    <header class="masthead">
      <button type="button" class="nav-toggle" aria-expanded={isNavOpen} aria-controls="nav" onClick={onNav}>
        <Icon name="menu" /> Menu
      </button>
      <a class="brand" href="#/">
        <img src="icon.svg" alt="" width="26" height="26" /> Rotunda
      </a>
      <span class="cluster" title="The cluster">
        {model?.about.server}
      </span>
      <span class="connection" role="status">
        {connection === 'live' ? (
          <Label tone="good" icon="ok">
            Live
          </Label>
        ) : (
          <Label tone="warn" icon="moving">
            {connection === 'lost' ? 'Reconnecting' : 'Connecting'}
          </Label>
        )}
      </span>
      <button type="button" class="theme" onClick={turnTheme}>
        <Icon name="theme" /> Theme: {theme}
      </button>
      {session !== undefined && (
        <>
          <span class="user" title={session.groups.join(', ')}>
            {session.user}
          </span>
          <button type="button" onClick={() => void logOut()}>
            Log out
          </button>
        </>
      )}
    </header>
  );
}
