import { useState } from 'preact/hooks';
import { begin } from './live.ts';
import { Icon } from './parts/icon.tsx';
import { logIn } from './request.ts';

/** Asks for a token of the cluster. */
export function Login({ failure }: { failure?: string | undefined }) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState(failure);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await logIn({ token: token.trim() });
      setToken('');
      await begin();
    } catch (error) {
      setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="card login-card" onSubmit={event => void submit(event)}>
        <h1>
          <img src="icon.svg" alt="" width="28" height="28" /> Log in to Rotunda
        </h1>
        <p>
          Open the link that <code>rotunda up</code> or <code>rotunda console</code> printed, or give a bearer token of
          the cluster. You see and do what its owner may.
        </p>
        {problem !== undefined && (
          <p class="notice bad" role="alert">
            <Icon name="error" /> {problem}
          </p>
        )}
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={token}
          onInput={event => setToken(event.currentTarget.value)}
        />
        <p class="hint">
          For example: <code>kubectl create token NAME -n NAMESPACE</code>
        </p>
        <button class="primary" type="submit" disabled={isBusy}>
          {isBusy ? 'Asking the cluster' : 'Log in'}
        </button>
      </form>
    </main>
  );
}
