import type { Host, HostFiles } from '../../host/port.ts';
import { days } from '../../kube/duration.ts';
import type { Keys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import type { Published } from '../exchange.ts';
import { keepBefore, noteWrite, putBack } from './before.ts';
import type { FileText } from './file-text.ts';
import { KubeconfigText } from './kubeconfig-text.ts';
import { renewLeaf } from './leaf.ts';
import { endPair, placePair } from './pair.ts';
import { KEY_MODE, KUBELET_CONF, KUBELET_UNIT, kubeconfigPlace, OWN_MODE } from './places.ts';
import type { LeafFiles, NodeSight } from './sight.ts';
import type { Step } from './step.ts';

export interface CarryOutOptions {
  readonly host: Host;
  readonly keys: Keys;
  readonly now: Date;
  /** Copies a CA, or the keys of service accounts, into the Secret. */
  publish(sight: NodeSight, what: Published): Promise<void>;
  /** Gets the kubelet a certificate; false: it is not there yet. */
  renewKubelet(sight: NodeSight, step: Extract<Step, { do: 'renew-kubelet' }>): Promise<boolean>;
}

/** Carries out one step; false: it has to go on later. It may die anywhere: what is there then leads to what is left to do. */
export async function carryOut(sight: NodeSight, step: Step, options: CarryOutOptions): Promise<boolean> {
  const { host } = options;
  const { files } = host;
  switch (step.do) {
    case 'end-pair':
      await endPair(files, step.begun);
      return true;
    case 'publish':
      await options.publish(sight, step.what);
      return true;
    case 'place-pair': {
      const { place, certificate, key, files: there, isHandOver } = step;
      await files.makeDirectory(sight.places.own, OWN_MODE);
      if (isHandOver) {
        if (there.key !== undefined) await keepBefore(files, sight.places, there.key, key);
        if (there.certificate !== undefined) await keepBefore(files, sight.places, there.certificate, certificate);
      }
      if (there.certificate !== undefined) await beforeKubelet(files, sight, there.certificate);
      await placePair(files, place, { certificate, key, files: there });
      return true;
    }
    case 'write':
      await beforeKubelet(files, sight, step.file);
      await (step.isHandOver ? keepBefore : noteWrite)(files, sight.places, step.file, step.text);
      await write(files, step.file, step.text);
      return true;
    case 'put-back':
      await beforeKubelet(files, sight, step.file);
      await putBack(files, sight.places, step.file.real);
      return true;
    case 'renew':
      await renew(sight, step, options);
      return true;
    case 'renew-kubelet':
      return options.renewKubelet(sight, step);
    case 'restart-kubelet':
      await host.services.restart(KUBELET_UNIT);
      await files.remove(sight.places.kubeletRestart);
      return true;
    case 'remove':
      for (const path of step.paths) await files.remove(path);
      return true;
    case 'forget-before':
      await files.removeTree(sight.places.before);
      return true;
  }
}

/** Makes a leaf anew and puts it where the old one is. */
async function renew(
  sight: NodeSight,
  { leaf, from, signs, isStopgap }: Extract<Step, { do: 'renew' }>,
  { host, keys, now }: CarryOutOptions,
): Promise<void> {
  const { files } = host;
  const signer = sight.keys.get(signs);
  if (signer === undefined) throw new RangeError(`the key that is to sign ${leaf.chain.name} was not looked for`);
  const made = await renewLeaf(leaf.certificate, {
    keys,
    now,
    from,
    signer,
    oldSigner: leaf.signedBy,
    defaultLifetimeMs: days(leaf.chain.validityDays),
    isStopgap,
  });
  const [certificate, key] = [encodeCertificates(made.chain), encodePrivateKey(made.key)];
  if (leaf.place !== undefined) {
    const there = { certificate: leaf.file, key: leaf.keyFile };
    return placePair(files, leaf.place, { certificate, key, files: there });
  }
  await replaceClient(files, sight, leaf, certificate, key);
}

/** Puts another certificate and its key into a kubeconfig; everything else in it stays. */
export async function replaceClient(
  files: HostFiles,
  sight: NodeSight,
  { file }: LeafFiles,
  certificate: string,
  key: string,
): Promise<void> {
  const { text } = new KubeconfigText(file.text, file.path).withClient(certificate, key);
  await beforeKubelet(files, sight, file);
  await noteWrite(files, sight.places, file, text);
  await write(files, file, text);
}

/** The kubelet has to be restarted for this file: that is noted first, so that nobody who dies forgets it. */
async function beforeKubelet(files: HostFiles, sight: NodeSight, { path }: FileText): Promise<void> {
  const kubeconfig = sight.kubeconfigs.get(KUBELET_CONF);
  if (path !== kubeconfigPlace(KUBELET_CONF) && path !== kubeconfig?.config.authorityFile) return;
  await noteKubeletRestart(files, sight);
}

export async function noteKubeletRestart(files: HostFiles, { places }: Pick<NodeSight, 'places'>): Promise<void> {
  await files.makeDirectory(places.own, OWN_MODE);
  await files.write(places.kubeletRestart, Buffer.from('the kubelet has to be restarted\n'), { mode: KEY_MODE });
}

/** With its mode and owner; a key stays with its owner alone. */
function write(files: HostFiles, { real, mode, owner, text: before }: FileText, text: string): Promise<void> {
  const holdsKey = PRIVATE.test(before) || PRIVATE.test(text);
  return files.write(real, Buffer.from(text), { mode: holdsKey ? KEY_MODE : mode, owner });
}

const PRIVATE = /PRIVATE KEY-----|client-key-data/;
