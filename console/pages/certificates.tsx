import { useState } from 'preact/hooks';
import type { BundleItem, CertificateItem } from '../../src/inventory/model.ts';
import { itemsOf, type Model } from '../live.ts';
import { matches, Search, Select, Toolbar } from '../parts/filter.tsx';
import { CERTIFICATE_STATES, RoleLabel, StateLabel } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import { hrefOf } from '../route.ts';
import type { PageProps } from './page.ts';

/** A certificate or a bundle, as one row. */
interface Row {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly item: CertificateItem | BundleItem;
  readonly namespace: string;
  readonly name: string;
  readonly issuer: string;
  readonly expires: string;
}

/** Sorted after every time. */
const LAST = '~';

/** Every certificate and bundle of the cluster. */
export function Certificates({ model, route }: PageProps) {
  const now = useNow();
  const [search, setSearch] = useState(route.query.get('search') ?? '');
  const [kind, setKind] = useState(route.query.get('kind') ?? '');
  const [state, setState] = useState(route.query.get('state') ?? '');
  const [namespace, setNamespace] = useState('');
  const rows = rowsOf(model);
  const namespaces = [...new Set(rows.map(row => row.namespace))].sort();
  const found = rows.filter(
    ({ item, namespace: place, name, issuer }) =>
      (kind === '' || item.role === kind) &&
      (state === '' || item.state === state) &&
      (namespace === '' || place === namespace) &&
      matches(search, name, place, issuer, subjectOf(item), item.component, item.description),
  );
  return (
    <>
      <Toolbar>
        <Search label="Search" value={search} onChange={setSearch} />
        <Select
          label="Kind"
          value={kind}
          onChange={setKind}
          options={[
            ['', 'All kinds'],
            ['signer', 'Signers'],
            ['target', 'Certificates'],
            ['ca-bundle', 'CA bundles'],
            ['unmanaged', 'Unmanaged'],
          ]}
        />
        <Select
          label="State"
          value={state}
          onChange={setState}
          options={[['', 'All states'], ...CERTIFICATE_STATES.map(word => [word, word] as const)]}
        />
        <Select
          label="Namespace"
          value={namespace}
          onChange={setNamespace}
          options={[['', 'All namespaces'], ...namespaces.map(word => [word, word] as const)]}
        />
      </Toolbar>
      <p class="count" role="status">
        {found.length} of {rows.length}
      </p>
      <Table
        caption="Certificates and bundles"
        empty="Nothing matches."
        items={found}
        id={({ kind: what, namespace: place, name }) => `${what}/${place}/${name}`}
        sortedBy="Next"
        columns={[
          {
            title: 'Name',
            sort: ({ name }) => name,
            cell: ({ kind: what, namespace: place, name }) => (
              <>
                <a href={hrefOf({ kind: what, namespace: place, name })}>{name}</a>
                <div class="sub">{place}</div>
              </>
            ),
          },
          { title: 'Kind', sort: ({ item }) => item.role, cell: ({ item }) => <RoleLabel role={item.role} /> },
          {
            title: 'State',
            sort: ({ item }) => CERTIFICATE_STATES.indexOf(item.state),
            cell: ({ item }) => <StateLabel state={item.state} />,
          },
          { title: 'Issuer', sort: ({ issuer }) => issuer, cell: ({ issuer }) => <span class="break">{issuer}</span> },
          {
            title: 'Ends',
            sort: ({ expires }) => expires || LAST,
            cell: ({ expires }) => <Relative at={expires} now={now} />,
          },
          {
            title: 'Next',
            sort: ({ item: { next } }) => (next === undefined || next.action === 'fail' ? LAST : (next.at ?? '')),
            cell: ({ item: { next } }) =>
              next === undefined ? '-' : next.at === undefined ? 'now' : <Relative at={next.at} now={now} />,
          },
        ]}
      />
    </>
  );
}

function rowsOf(model: Model): Row[] {
  const certificates = itemsOf(model, 'certificates').map((item): Row => {
    const { certificate, metadata } = item;
    return {
      kind: 'Secret',
      item,
      namespace: metadata.namespace ?? '',
      name: metadata.name,
      issuer: certificate === undefined ? '' : certificate.isSelfSigned ? 'self-signed' : certificate.issuer,
      expires: certificate?.notAfter ?? '',
    };
  });
  const bundles = itemsOf(model, 'bundles').map((item): Row => {
    const { metadata, certificates: held } = item;
    const expires =
      held
        .map(({ notAfter }) => notAfter)
        .sort()
        .at(-1) ?? '';
    const issuer = `${held.length} ${held.length === 1 ? 'authority' : 'authorities'}`;
    return { kind: 'ConfigMap', item, namespace: metadata.namespace ?? '', name: metadata.name, issuer, expires };
  });
  return [...certificates, ...bundles];
}

function subjectOf(item: Row['item']): string {
  return 'keys' in item ? item.certificates.map(({ subject }) => subject).join(' ') : (item.certificate?.subject ?? '');
}
