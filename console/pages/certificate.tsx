import { useEffect, useState } from 'preact/hooks';
import type { ObjectDetail } from '../../src/cli/console/model.ts';
import type { BundleItem, CertificateFacts, CertificateItem, NextDecision } from '../../src/inventory/model.ts';
import { isSameObject, type ObjectRef, objectText } from '../../src/trust/object.ts';
import { itemsOf, type Model } from '../live.ts';
import { Card, Empty, Facts } from '../parts/card.tsx';
import { RoleLabel, StateLabel } from '../parts/label.tsx';
import { Moment, Relative, useNow } from '../parts/time.tsx';
import { getJson } from '../request.ts';
import { hrefOf } from '../route.ts';
import { Connections, History, OnNodes } from './certificate-surroundings.tsx';
import type { PageProps } from './page.ts';

/** One Secret or ConfigMap: what it is, why and when it changes, who uses it where. */
export function Certificate({ model, route, onAct }: PageProps) {
  const now = useNow();
  const [, kind, namespace = '', name = ''] = route.path;
  const object: ObjectRef = { kind: kind === 'secret' ? 'Secret' : 'ConfigMap', namespace, name };
  const id = `${namespace}/${name}`;
  const item = object.kind === 'Secret' ? model.sections.certificates.get(id) : model.sections.bundles.get(id);
  const detail = useDetail(object, item);
  if (item === undefined)
    return <Empty>There is no {objectText(object)} with certificates in it, or you may not see it.</Empty>;
  const isBundle = 'keys' in item;
  return (
    <>
      <p class="actions">
        <RoleLabel role={item.role} /> <StateLabel state={item.state} />
        {!isBundle && item.role !== 'unmanaged' && (
          <button type="button" class="danger" onClick={() => onAct({ kind: 'regenerate', object })}>
            {item.role === 'signer' ? 'Replace this signer' : 'Regenerate'}
          </button>
        )}
        <a href={`#/graph?focus=${encodeURIComponent(objectText(object))}`}>Show in the trust graph</a>
      </p>
      {item.problem !== undefined && <p class={`notice ${item.state === 'Due' ? 'info' : 'bad'}`}>{item.problem}</p>}
      <div class="grid pair">
        <Card title="What it is">
          <Facts
            rows={[
              ['Namespace', namespace],
              ['Object', objectText(object)],
              ['Description', item.description],
              ['Purpose', isBundle ? undefined : item.purpose],
              ['Component', item.component],
              ['Keys', isBundle ? item.keys.join(', ') : undefined],
              ...(isBundle ? [] : certificateRows(item.certificate, now)),
            ]}
          />
        </Card>
        <div class="stack">
          <Why next={item.next} notes={item.notes} now={now} />
          {isBundle ? (
            <Authorities item={item} now={now} />
          ) : (
            <Chain item={item} detail={detail} model={model} now={now} />
          )}
          {!isBundle && <Names certificate={item.certificate} />}
          <Card title="Annotations">
            {detail === undefined || Object.keys(detail.annotations).length === 0 ? (
              <Empty>None about certificates.</Empty>
            ) : (
              <Facts rows={Object.entries(detail.annotations)} isStacked />
            )}
          </Card>
        </div>
        <OnNodes model={model} object={object} />
        <Connections model={model} object={object} trustedBy={isBundle ? [] : item.trustedBy} />
        <History model={model} object={object} certificate={isBundle ? undefined : item.certificate} now={now} />
      </div>
    </>
  );
}

/** Asked for again whenever the item in the live model becomes another one. */
function useDetail(object: ObjectRef, item: CertificateItem | BundleItem | undefined): ObjectDetail | undefined {
  const [detail, setDetail] = useState<ObjectDetail>();
  useEffect(() => {
    if (item === undefined) return;
    const stop = new AbortController();
    const path = [object.kind.toLowerCase(), object.namespace, object.name].map(encodeURIComponent).join('/');
    getJson<ObjectDetail>(`api/objects/${path}`, stop.signal)
      .then(setDetail)
      .catch(() => {});
    return () => stop.abort();
  }, [item]);
  return detail;
}

function certificateRows(certificate: CertificateFacts | undefined, now: number) {
  if (certificate === undefined) return [];
  const {
    subject,
    issuer,
    isSelfSigned,
    groups,
    usages,
    notBefore,
    notAfter,
    key,
    signatureAlgorithm,
    serial,
    sha256,
  } = certificate;
  return [
    ['Subject', <span class="break">{subject}</span>],
    ['Groups', groups.join(', ')],
    ['Issuer', <span class="break">{isSelfSigned ? 'itself' : issuer}</span>],
    ['Usage', usages.join(', ')],
    ['Valid from', <Moment at={notBefore} />],
    [
      'Valid until',
      <>
        <Moment at={notAfter} /> (<Relative at={notAfter} now={now} />)
      </>,
    ],
    ['Key', key],
    ['Signature', signatureAlgorithm],
    ['Serial', <code class="break">{serial}</code>],
    ['SHA-256', <code class="break">{sha256}</code>],
  ] as const;
}

const WHAT = { keep: 'Kept until', regenerate: 'Made anew', rewrite: 'Rewritten', fail: 'Needs a person' } as const;

function Why({ next, notes, now }: { next: NextDecision | undefined; notes: readonly string[]; now: number }) {
  return (
    <Card title="Why and when next">
      {next === undefined ? (
        <Empty>No rule we know of rotates it.</Empty>
      ) : (
        <Facts
          rows={[
            [
              WHAT[next.action],
              next.action === 'fail' ? (
                'now'
              ) : next.at === undefined ? (
                'now'
              ) : (
                <>
                  <Moment at={next.at} /> (<Relative at={next.at} now={now} />)
                </>
              ),
            ],
            ['Rule', next.rule],
            ['Reason', next.reason],
          ]}
        />
      )}
      {notes.map(note => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
    </Card>
  );
}

function Names({ certificate }: { certificate: CertificateFacts | undefined }) {
  const names = certificate?.hostnames ?? [];
  return (
    <Card title="Host names">
      {names.length === 0 ? (
        <Empty>It is good for no host name.</Empty>
      ) : (
        <ul class="names columns">
          {names.map(name => (
            <li key={name} class="break">
              {name}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Chain({
  item,
  detail,
  model,
  now,
}: {
  item: CertificateItem;
  detail: ObjectDetail | undefined;
  model: Model;
  now: number;
}) {
  const signer = item.signedBy;
  const signerItem =
    signer &&
    itemsOf(model, 'certificates').find(({ metadata }) =>
      isSameObject(signer, { kind: 'Secret', namespace: metadata.namespace ?? '', name: metadata.name }),
    );
  return (
    <Card title="Chain">
      <ol class="chain">
        {(detail?.chain ?? (item.certificate === undefined ? [] : [item.certificate])).map(
          ({ sha256, subject, notAfter, key }) => (
            <li key={sha256}>
              <strong class="break">{subject}</strong>
              <div class="sub">
                {key}, ends <Relative at={notAfter} now={now} />, <code title={sha256}>{sha256.slice(0, 16)}</code>
              </div>
            </li>
          ),
        )}
        {signer !== undefined && signerItem?.certificate?.sha256 !== item.certificate?.sha256 && (
          <li>
            signed by <a href={hrefOf(signer)}>{signer.name}</a>
            <div class="sub">
              {signer.namespace}
              {signerItem?.certificate && (
                <>
                  , ends <Relative at={signerItem.certificate.notAfter} now={now} />
                </>
              )}
            </div>
          </li>
        )}
      </ol>
      {signer === undefined && !item.certificate?.isSelfSigned && (
        <p class="hint">Its signer is in no object we see.</p>
      )}
    </Card>
  );
}

function Authorities({ item, now }: { item: BundleItem; now: number }) {
  return (
    <Card title="Authorities">
      <ol class="chain">
        {item.certificates.map(({ sha256, subject, notAfter, isExpired }) => (
          <li key={sha256}>
            <strong class="break">{subject}</strong>
            <div class="sub">
              {isExpired ? 'ended' : 'ends'} <Relative at={notAfter} now={now} />,{' '}
              <code title={sha256}>{sha256.slice(0, 16)}</code>
            </div>
          </li>
        ))}
      </ol>
    </Card>
  );
}
