/** The Kubernetes version whose API this is. The part after the plus tells that it is not the real one. */
export const VERSION = {
  major: '1',
  minor: '33',
  gitVersion: 'v1.33.0+rotunda',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: 'v8',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const;
