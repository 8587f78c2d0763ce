import type { Command } from 'commander';
import { type SourceFlags, withNamespaceFlags, withSourceFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';
import { type LayoutFlags, withLayoutFlag } from '../look/layout-flag.ts';
import { withOutputFlag } from '../output/format.ts';
import { GET_KINDS } from './words.ts';

export interface GetFlags extends SourceFlags, LayoutFlags {
  readonly output: string;
  readonly selector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly watch?: boolean | undefined;
  readonly outputWatchEvents?: boolean | undefined;
  readonly headers: boolean;
  readonly sortBy?: string | undefined;
  readonly now?: string | undefined;
  readonly ask?: boolean | undefined;
}

/** `rotunda get`: certificates, signers, bundles, nodes, revisions, pools and hand-overs as tables or documents. */
export function addGet(program: Command): void {
  const command = program
    .command('get')
    .summary('list certificates, signers, bundles, nodes, revisions, machine config pools or hand-overs')
    .description(
      `Lists ${GET_KINDS.join(', ')} of a cluster or of a folder (--from), with what the rotation rules will do next and when.\n` +
        'Names follow as in kubectl: TYPE NAME... or TYPE/NAME... Works on the TLS Secrets of any cluster. Nothing is written, and\n' +
        'private keys are never shown. Exit code 1 when a name is not found.\n' +
        'certs of a cluster that kubeadm made are those that can be seen over its API and over TLS; with --from /etc/kubernetes, or any\n' +
        'folder of PEM files and kubeconfigs, those in the files. Nothing needs to be installed for either.\n' +
        'hand-overs say of each signer where its replacement stands and for whom it waits: by what its operator noted; where it noted\n' +
        'nothing, verifiers are asked from here. Of an adopted kubeadm cluster they are those of its CAs and of sa, the keys of service\n' +
        'accounts, as its operator says.',
    )
    .argument('<type>', GET_KINDS.join(', '))
    .argument('[names...]', 'only these');
  withOutputFlag(withLayoutFlag(withNamespaceFlags(withSourceFlags(command))))
    .option('-l, --selector <labels>', 'only objects with these labels, such as a=b,c!=d')
    .option(
      '--field-selector <fields>',
      'only objects where state=..., role=..., metadata.name=... or metadata.namespace=...',
    )
    .option('--sort-by <field>', 'expires, next, name or age')
    .option('-w, --watch', 'after the list, print what changes; what is deleted is printed once more')
    .option('--output-watch-events', 'with --watch: say of each whether it was ADDED, MODIFIED or DELETED')
    .option('--no-headers', 'without the line of headings')
    .option('--ask', 'with hand-overs: ask the verifiers from here, whatever operators have noted')
    .option('--now <time>', 'judge as of this moment, RFC 3339 (default: the clock)')
    .action(async (type: string, names: string[], flags: GetFlags) => {
      const { runGet } = await import('./run.ts');
      await runGet([type, ...names], flags);
    });
  withExamples(
    command,
    'rotunda get certs --sort-by expires',
    'rotunda get signers -n openshift-kube-apiserver-operator -o wide',
    'rotunda get certs --field-selector state!=Good -o jsonpath=\'{range .items[*]}{.metadata.name}{"\\n"}{end}\'',
    'rotunda get certs -o custom-columns=NAME:.metadata.name,UNTIL:.certificate.notAfter',
    'rotunda get hand-overs',
    'rotunda get bundles --from must-gather/',
    'rotunda get certs --from /etc/kubernetes',
  );
}
