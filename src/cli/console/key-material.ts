/** A private key in PEM, or base64 of any PEM, which is how the data of a Secret looks. */
const KEY_MATERIAL = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|LS0tLS1CRUdJTi/;

export function holdsKeyMaterial(text: string): boolean {
  return KEY_MATERIAL.test(text);
}

/** The last look at everything that leaves the server: the model has no keys, and this makes sure of it. */
export function assertNoKeyMaterial(text: string, where: string): void {
  if (holdsKeyMaterial(text))
    throw new Error(`${where}: what looks like key material was about to be sent; nothing was`);
}
