import type { SignerOptions } from '../auth/signer.ts';
import type { Core } from '../rest/core.ts';
import { fillTokenSecrets } from './account-tokens.ts';
import { watchBudgets } from './budgets.ts';
import type { Controller } from './controller.ts';
import { serveDefinitions } from './definitions.ts';
import { expireEvents } from './events.ts';
import { collectGarbage } from './garbage.ts';
import { furnishNamespaces } from './namespace-content.ts';
import { emptyNamespaces } from './namespaces.ts';
import { aggregateRoles } from './roles.ts';
import { signRequests } from './signing.ts';

/** PEM of what clients in pods verify with; or others see to that they have it. */
export type RootCa = (() => string) | 'of others';

export interface ControlOptions {
  readonly rootCa: RootCa;
  readonly signer?: SignerOptions | undefined;
  readonly onError: (controller: string, key: string, error: unknown) => void;
}

/** Starts everything that works inside the server by itself. Definitions come first: they say what is served. */
export function startControl(core: Core, { rootCa, signer, onError }: ControlOptions): Controller {
  const failed = (controller: string) => (key: string, error: unknown) => onError(controller, key, error);
  const controllers = [
    serveDefinitions(core, failed('definitions')),
    collectGarbage(core, failed('garbage')),
    emptyNamespaces(core, failed('namespaces')),
    furnishNamespaces(core, rootCa, failed('namespace-content')),
    watchBudgets(core, failed('budgets')),
    aggregateRoles(core, failed('roles')),
    fillTokenSecrets(core, rootCa, failed('account-tokens')),
    expireEvents(core, failed('events')),
    ...(signer === undefined ? [] : [signRequests(core, signer, failed('signing'))]),
  ];
  return {
    async idle() {
      // One controller's work is another one's trigger: all of them must be idle in the same round.
      for (let before = -1; before !== core.store.revision; ) {
        before = core.store.revision;
        for (const controller of controllers) await controller.idle();
      }
    },
    async close() {
      await Promise.all(controllers.map(controller => controller.close()));
    },
  };
}
