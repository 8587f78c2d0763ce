import { join } from 'node:path';
import { nodeAddress } from '../../src/local/addresses.ts';

/** What the processes of one cluster have to agree on: everything is below one directory and behind its own addresses. */
export const NODE_COUNT = 3;
export const API_PORT = 6443;
/** Far from those of the nodes. */
const API_INDEX = 100;

/** How the operator is called at the API: its requests can be told from those of others. */
export const OPERATOR_USER = 'operator';

export const nodeNames = (): string[] => Array.from({ length: NODE_COUNT }, (_, index) => `master-${index}`);
export const nodeRoot = (dir: string, node: string): string => join(dir, 'nodes', node);
export const addressOf = (dir: string, node: string): string => nodeAddress(dir, nodeNames().indexOf(node));
export const apiAddress = (dir: string): string => nodeAddress(dir, API_INDEX);
export const apiDirectory = (dir: string): string => join(dir, 'api');
export const adminKubeconfig = (dir: string): string => join(apiDirectory(dir), 'kubeconfig');
export const operatorKubeconfig = (dir: string): string => join(dir, 'operator.kubeconfig');
/** The CA that vouches for the operator. */
export const operatorCa = (dir: string): string => join(dir, 'operator-ca.crt');
