import { render } from 'preact';
import { App } from './app.tsx';
import { begin, followVisibility } from './live.ts';
import { logIn } from './request.ts';
import { applyStoredTheme } from './theme.ts';

applyStoredTheme();
const root = document.getElementById('app');
if (root !== null) {
  // A link of the console carries its token behind the #, which browsers do not send and servers do not log.
  const [, link] = /^#login=([\w-]+)$/.exec(location.hash) ?? [];
  let failure: string | undefined;
  if (link !== undefined) {
    history.replaceState(undefined, '', '#/');
    await logIn({ link }).catch((error: unknown) => {
      failure = (error as Error).message;
    });
  }
  render(<App loginFailure={failure} />, root);
  followVisibility();
  await begin();
}
