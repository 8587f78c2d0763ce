import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import {
  prepareSigningRequest,
  prepareSigningRequestUpdate,
  type SigningRequestDoor,
  signingRequestErrors,
  signingRequestUpdateErrors,
} from '../../auth/signing-request.ts';
import type { Fields, Occasion, Rules } from '../kind.ts';

/** Requests are what they were when they were made; only approval and status change. */
export const signingRequestRules: Rules = {
  prepareCreate: (object, { user }) => prepareSigningRequest(requestOf(object), user) as Fields,
  prepareUpdate: (object, old, occasion) => through('main', object, old, occasion),
  prepareStatus: (object, old, occasion) => through('status', object, old, occasion),
  checkCreate: object => signingRequestErrors(requestOf(object)),
  checkUpdate: (object, old, subresource) =>
    signingRequestUpdateErrors(
      requestOf(object),
      requestOf(old),
      subresource === 'approval' || subresource === 'status' ? subresource : 'main',
    ),
};

/** The `approval` subresource: changes the conditions and nothing else. */
export function prepareApproval(object: Fields, old: Fields, occasion: Occasion): Fields {
  return through('approval', object, old, occasion);
}

function through(door: SigningRequestDoor, object: Fields, old: Fields, { now }: Occasion): Fields {
  return prepareSigningRequestUpdate(requestOf(object), requestOf(old), door, now) as Fields;
}

function requestOf(object: Fields): CertificateSigningRequest {
  return object as unknown as CertificateSigningRequest;
}
