import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { listed } from '../flag-values.ts';
import type { VerbFlags } from './selection.ts';

export type RegenerateVerb = 'leaf' | 'top-level';

export interface RegenerateFlags extends VerbFlags {
  readonly validBefore?: string | undefined;
  readonly overrideGate?: boolean | undefined;
}

export interface RemoveTrustFlags extends VerbFlags {
  readonly createdBefore: string;
  readonly excludeBundles?: readonly string[] | undefined;
}

export interface MachineConfigServerFlags extends ClusterFlags {
  readonly updateIgnition?: boolean | string | undefined;
  readonly updateRootCa?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly verbose?: boolean | undefined;
  readonly output: string;
}

const OUTPUT = 'table, json, yaml, name or jsonpath=<template>';
const ROOT_CA = 'also change kube-system/root-ca, of which managed user data is made: this reboots all nodes';
const VERBOSE = 'also name what is passed over, and why';

/** The verbs of `oc adm ocp-certificates`, under their own names (spec 70, 2). `monitor-certificates` is with `monitor`. */
export function addCertificateVerbs(program: Command): void {
  regenerate(program, 'leaf')
    .summary('have leaf certificates made anew by their operators')
    .description(
      'Marks leaf certificates so that their operators make new ones, signed by the current signer. In the middle of a hand-over a leaf is\n' +
        'held back, with the phase: it follows by itself once everybody who verifies has loaded the signer. So is a leaf of a signer that is in\n' +
        "none of our tables, while that is about to be replaced or younger than a tenth of the leaf's refresh time. --override-gate says who\n" +
        'would be cut off, asks twice and goes ahead. Does not wait.',
    )
    .option('--override-gate', 'also leaves whose signer may not be trusted everywhere yet; noted on the Secret')
    .option('-y, --yes', 'do not ask');
  regenerate(program, 'top-level')
    .summary('have root signers made anew by their operators')
    .description(
      'Marks root signers so that their operators hand over to new ones: a new signer is made known first, and signs when everybody who\n' +
        'verifies has loaded it; then leaves follow. The old ones stay in their bundles until they expire or remove-old-trust takes them out.\n' +
        'A signer that is being handed over already is left alone, with the phase. Does not wait: see rotunda get hand-overs.',
    )
    .option('-y, --yes', 'do not ask');
  removeOldTrust(program);
  machineConfigServer(program);
}

function regenerate(program: Command, verb: RegenerateVerb): Command {
  const command = verbFlags(program.command(`regenerate-${verb}`), 'secret').option(
    '--valid-before <time>',
    'only certificates that were valid at this moment already, RFC 3339',
  );
  return command.action(async (words: string[], flags: RegenerateFlags) => {
    const { runRegenerate } = await import('./regenerate.ts');
    await runRegenerate(verb, words, flags);
  });
}

function removeOldTrust(program: Command): void {
  verbFlags(program.command('remove-old-trust'), 'configmap')
    .summary('take CAs that are older than a moment out of their bundles')
    .description(
      'Removes CAs from managed bundles that began at or before --created-before. Refuses where a certificate in a Secret or ConfigMap of\n' +
        'any namespace, in a kubeconfig there, in a signing request or of a server that answers still needs one of them, naming both; where a\n' +
        'process on a node shows one of an older signer, or cannot be seen in the middle of a hand-over; and never leaves a bundle empty. It\n' +
        'cannot see files on nodes that nobody reports, nor kubeconfigs outside the cluster.',
    )
    .requiredOption('--created-before <time>', 'what began at or before this moment goes, RFC 3339')
    .option('--exclude-bundles <namespace/name>', 'leave this one alone; repeatable, or joined by commas', listed)
    .option('-y, --yes', 'do not ask')
    .action(async (words: string[], flags: RemoveTrustFlags) => {
      const { runRemoveOldTrust } = await import('./remove-old-trust.ts');
      await runRemoveOldTrust(words, flags);
    });
}

function machineConfigServer(program: Command): void {
  withClusterFlags(program.command('regenerate-machine-config-server-serving-cert'))
    .summary('make the certificate of the machine-config server anew where it is due, and restart the server')
    .description(
      'Runs the rotation rules over the signer, bundle and certificate that new machines meet first, and restarts the server. Young\n' +
        'certificates stay. A signer that is due is handed over: a new CA is made beside it and brought into the user data of machines; when all\n' +
        'of it has the CA, and machines made before have joined, the server gets a certificate of it. Until then it is held back, with the\n' +
        'names of those it waits for: run it again. The old CA stays beside the new one. See rotunda get hand-overs, rotunda take-back.',
    )
    .option('--update-ignition [boolean]', 'also do update-ignition-ca-bundle-for-machine-config-server', 'true')
    .option('--update-root-ca', ROOT_CA)
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do not ask')
    .option('-o, --output <format>', OUTPUT, 'table')
    .option('-v, --verbose', VERBOSE)
    .action(async (flags: MachineConfigServerFlags) => {
      const { runRegenerateServingCert } = await import('./machine-config-server.ts');
      await runRegenerateServingCert(flags);
    });
  withClusterFlags(program.command('update-ignition-ca-bundle-for-machine-config-server'))
    .summary('bring the CA of the machine-config server into the user data of new machines')
    .description(
      'Brings the CA into the user-data Secrets of openshift-machine-api. CAs there that are still valid stay beside the new one, so that\n' +
        'machines can join while the server has not switched yet. On bare metal it also changes kube-system/root-ca, which reboots all nodes.',
    )
    .option('--update-root-ca', ROOT_CA)
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do not ask')
    .option('-o, --output <format>', OUTPUT, 'table')
    .option('-v, --verbose', VERBOSE)
    .action(async (flags: MachineConfigServerFlags) => {
      const { runUpdateIgnition } = await import('./machine-config-server.ts');
      await runUpdateIgnition(flags);
    });
}

/** What all verbs over objects take. */
function verbFlags(command: Command, kind: 'secret' | 'configmap'): Command {
  const plural = `${kind}s`;
  return withClusterFlags(command.argument('[objects...]', `${kind}/NAME..., or ${plural} NAME..., or ${plural} --all`))
    .option('-o, --output <format>', OUTPUT, 'table')
    .option('-n, --namespace <name>', 'namespace of the objects')
    .option('-A, --all-namespaces', 'in all namespaces')
    .option('--all', 'all objects of the type')
    .option('-l, --selector <labels>', 'only objects with these labels')
    .option('--field-selector <fields>', 'only objects with these fields, such as metadata.name=x')
    .option('--local', 'without asking a cluster: read from -f, print what would be written')
    .option(
      '-f, --filename <path>',
      'file or folder to read the objects from, with --local; repeatable, or joined by commas',
      listed,
    )
    .option('--dry-run', 'say what would happen, and what would follow; write nothing')
    .option('-v, --verbose', VERBOSE);
}
