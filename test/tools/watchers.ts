import { readFileSync, writeFileSync } from 'node:fs';

/** Every systemd, containerd and kubelet watches files, and many processes of ours; all of root's on this machine count together. */
const MOST = '/proc/sys/fs/inotify/max_user_instances';
/** The usual 128 are few: who may not watch any more ends, or hears of changes a minute later. */
const ENOUGH = 1024;

/** Lets enough processes watch files, where we may decide that. */
export function allowEnoughWatchers(): void {
  try {
    if (Number(readFileSync(MOST, 'utf8')) < ENOUGH) writeFileSync(MOST, String(ENOUGH));
  } catch {
    // Another system, or not root.
  }
}
