import { KubeError } from '../../kube/error.ts';

/** What the disk gives back of an object is not what was written. The object is never served; only deleting it helps. */
export class DamagedObjectError extends KubeError {
  constructor({ file, bucket, path, revision }: { file: string; bucket: string; path: string; revision: number }) {
    const [group = '', plural = ''] = bucket.split('/');
    const name = path.slice(path.lastIndexOf('/') + 1);
    const resource = group === '' ? plural : `${plural}.${group}`;
    // Reason and way out are those of the real server for objects that it cannot read from etcd.
    const message =
      `${resource} ${JSON.stringify(path)} is damaged in ${file}: the checksum of revision ${revision} does not match; ` +
      'delete it with ignoreStoreReadErrorWithClusterBreakingPotential=true and create it again';
    super(500, 'StorageReadError', message, { name, ...(group === '' ? {} : { group }), kind: plural });
  }
}
