import { KubeError } from '../../kube/error.ts';

/** The patch itself is wrong: 400. */
export function malformed(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}

/** The patch is sound but does not fit the document: 422, with the reason as a cause, where `kubectl` shows it. */
export function unfit(why: string): KubeError {
  return new KubeError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
    causes: [{ reason: 'UnexpectedServerResponse', message: why }],
  });
}

/** The patch asks for more than we do at once: 413. */
export function tooLarge(message: string): KubeError {
  return new KubeError(413, 'RequestEntityTooLarge', message);
}
