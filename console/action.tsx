import { useEffect, useRef, useState } from 'preact/hooks';
import type { Action, ActionPreview, ActionResult } from '../src/cli/console/model.ts';
import { Icon } from './parts/icon.tsx';
import { PlanTable } from './parts/plan-table.tsx';
import { postJson } from './request.ts';

export type AskFor = (action: Action) => void;

/** What is said about a hand-over is all that can be said: the rest depends on others. */
function hasPlan({ kind }: Action): boolean {
  return kind === 'regenerate' || kind === 'pause' || kind === 'resume';
}

/** Shows what an action would do, and does it when the user says so. */
export function ActionDialog({
  action,
  onClose,
  onDone,
}: {
  action: Action;
  onClose: () => void;
  onDone: (text: string) => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [preview, setPreview] = useState<ActionPreview>();
  const [problem, setProblem] = useState<string>();
  const [isOverriding, setOverriding] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
    postJson<ActionPreview>('api/actions', action)
      .then(setPreview)
      .catch((error: unknown) => setProblem((error as Error).message));
  }, []);
  const confirm = async () => {
    if (preview === undefined) return;
    setBusy(true);
    try {
      const { text } = await postJson<ActionResult>(`api/actions/${preview.id}`, { overrideGate: isOverriding });
      onDone(text);
      dialog.current?.close();
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };
  const isReady = preview !== undefined && preview.refusal === undefined && problem === undefined;
  const isHeld = preview?.gate !== undefined && !isOverriding;
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="action-title" onClose={onClose}>
      <h2 id="action-title">{preview?.title ?? 'Working out the plan'}</h2>
      <div class="dialog-body">
        {problem !== undefined && (
          <p class="notice bad" role="alert">
            <Icon name="error" /> {problem}
          </p>
        )}
        {preview === undefined && problem === undefined && (
          <p role="status">Running the rotation rules over a copy of the cluster</p>
        )}
        {preview?.refusal !== undefined && (
          <p class="notice bad" role="alert">
            <Icon name="error" /> {preview.refusal}
          </p>
        )}
        {preview?.notes.map(note => (
          <p key={note}>{note}</p>
        ))}
        {preview !== undefined && preview.refusal === undefined && hasPlan(action) && (
          <>
            <h3>What it would do</h3>
            <PlanTable events={preview.events} empty="Nothing else changes." caption="What it would do" />
          </>
        )}
        {preview?.gate !== undefined && (
          <div class="notice warn">
            <p>
              <Icon name="warning" /> It should wait: {preview.gate}
            </p>
            <label>
              <input
                type="checkbox"
                checked={isOverriding}
                onChange={event => setOverriding(event.currentTarget.checked)}
              />{' '}
              Go ahead all the same; this is noted on the object
            </label>
          </div>
        )}
      </div>
      <footer class="dialog-foot">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={!isReady || isHeld || isBusy} onClick={() => void confirm()}>
          {isBusy ? 'Working' : 'Confirm'}
        </button>
      </footer>
    </dialog>
  );
}
