import type { Certificate } from '../../pki/certificate.ts';

/** CAs by what they are, each certificate once, with every place that holds it. */
export class SeenAuthorities {
  readonly #seen = new Map<
    string,
    { readonly name: string; readonly certificate: Certificate; readonly places: string[] }
  >();

  add(name: string, place: string, certificates: readonly Certificate[]): void {
    for (const certificate of certificates) {
      const id = certificate.der.toString('base64');
      const before = this.#seen.get(id);
      if (before === undefined) this.#seen.set(id, { name, certificate, places: [place] });
      else if (!before.places.includes(place)) before.places.push(place);
    }
  }

  /** The certificates that go by this name. */
  named(name: string): Certificate[] {
    return [...this.#seen.values()].filter(seen => seen.name === name).map(({ certificate }) => certificate);
  }

  /** All of them; a second one of a name is told apart by its number. */
  list(): { readonly name: string; readonly certificate: Certificate; readonly places: readonly string[] }[] {
    const counts = new Map<string, number>();
    return [...this.#seen.values()].map(({ name, certificate, places }) => {
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return { name: count === 1 ? name : `${name} (${count})`, certificate, places };
    });
  }
}
