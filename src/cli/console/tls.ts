import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

const RECHECK_MS = seconds(10);

/** Reads a pair, and again and again: certificates rotate, that of the console too. A pair that does not fit is not taken. */
export async function followTls(files: TlsFiles, log: Log) {
  let material = await readPair(files);
  let listener: (material: TlsPair) => void = () => {};
  const timer = setInterval(() => {
    readPair(files)
      .then(found => {
        if (found.cert === material.cert && found.key === material.key) return;
        material = found;
        listener(found);
      })
      .catch((err: unknown) =>
        log.warn({ err }, 'the certificate of the console could not be read again; the old one stays'),
      );
  }, RECHECK_MS);
  timer.unref();
  return {
    material,
    onChange(heard: (material: TlsPair) => void) {
      listener = heard;
    },
    stop: () => clearInterval(timer),
  };
}

async function readPair({ certFile, keyFile }: TlsFiles): Promise<TlsPair> {
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  createSecureContext({ cert, key });
  return { cert, key };
}
