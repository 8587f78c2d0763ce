import { resolve } from 'node:path';
import type { Command } from 'commander';
import { wholeNumberFrom } from '../flag-values.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';

interface Flags {
  dir: string;
  host: string;
  port: string;
}

/** `rotunda api`: the embedded Kubernetes API alone. */
export function addApi(program: Command): void {
  program
    .command('api')
    .summary('start the embedded Kubernetes API and print the path of its kubeconfig')
    .description(
      'Starts a Kubernetes API in this process, over a durable store below the given folder. kubectl works against it:\n' +
        'kubectl --kubeconfig <path> get secrets -A. It listens on loopback unless told otherwise, speaks TLS only and\n' +
        'knows nobody but the holder of its kubeconfig until you say so with RBAC. Stop it with Ctrl-C.',
    )
    .option('--dir <folder>', 'where its state, keys and kubeconfig are kept', '.rotunda')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 chooses a free one', '0')
    .action(async ({ dir, host, port }: Flags) => {
      const wantedPort = wholeNumberFrom('--port', port, 0, 65_535);
      const { startApi, StoreLockedError } = await import('../../api/api.ts');
      const onError = (what: string, error: unknown) => {
        process.stderr.write(`${what}: ${error instanceof Error ? error.message : String(error)}\n`);
      };
      try {
        const api = await startApi({ dir: resolve(dir), host, port: wantedPort, onError });
        process.stdout.write(`ready: ${api.url}, kubeconfig ${api.kubeconfigPath}\n`);
        await untilStopped();
        await api.close();
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (
          error instanceof StoreLockedError ||
          code === 'EADDRINUSE' ||
          code === 'EADDRNOTAVAIL' ||
          code === 'EACCES'
        ) {
          throw new UsageError((error as Error).message);
        }
        throw error;
      }
    });
}
