import type { AskFor } from '../action.tsx';
import type { Model } from '../live.ts';
import type { Route } from '../route.ts';

/** What every page is given. */
export interface PageProps {
  readonly model: Model;
  readonly route: Route;
  readonly onAct: AskFor;
}
