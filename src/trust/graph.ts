import { isSameObject, type ObjectRef } from './object.ts';

/** Who trusts whom with what, and how a change travels: data, made by the operators beside their chain tables. */
export interface TrustGraph {
  readonly deliveries: readonly Delivery[];
  readonly flows: readonly Flow[];
  readonly edges: readonly Edge[];
}

/**
 * How a process takes a change of what it reads:
 * `watch`: it notices by itself; `per-handshake`: it reads again for every new connection; `restart`: it reads at its start
 * only; `on-use`: somebody reads it each time it is needed, a person or a short-lived program.
 */
export type Takes = 'watch' | 'per-handshake' | 'restart' | 'on-use';

export type NodeSet = 'control-plane' | 'all';

/**
 * How an object gets onto nodes:
 * `revision`: copied once for each revision, and the pods are replaced one node after the other;
 * `sync`: replaced in place by a side container; `node-agent`: replaced in place by the agent of the node.
 */
export type Carrier = 'revision' | 'sync' | 'node-agent';

/** An object as files on nodes, and who reads them. */
export interface Delivery {
  readonly object: ObjectRef;
  readonly carrier: Carrier;
  readonly nodes: NodeSet;
  /** On the node; `<REVISION>` stands for the number of the revision. */
  readonly hostDirectory: string;
  /** The same directory as the readers see it. */
  readonly directory: string;
  readonly files: readonly string[];
  readonly optional: boolean;
  readonly uses: readonly Use[];
}

/** One process that reads a delivered object. */
export interface Use {
  readonly process: string;
  /** The flag or setting that names the file; empty where a person does. */
  readonly setting: string;
  readonly takes: Takes;
}

/** A change of `from` changes `to`. */
export interface Flow {
  readonly from: ObjectRef;
  readonly to: ObjectRef;
  /** `trusted`: a signer joins its bundle; the others say how the content gets there. */
  readonly kind: 'trusted' | 'combined' | 'copied' | 'embedded';
  readonly by: string;
}

/** One kind of TLS connection. */
export interface Edge {
  readonly name: string;
  readonly client: Side;
  readonly server: Side & { readonly endpoint: Endpoint };
}

export interface Side {
  readonly process: string;
  readonly nodes: NodeSet | 'anywhere';
  /** What it shows of itself; absent: nothing. `token`: it proves itself inside the connection. */
  readonly presents?: Holding | Foreign | 'token' | undefined;
  /** What it checks the other side with; absent: it does not. */
  readonly verifiesWith?: Holding | undefined;
}

/** An object in the hands of one side: as delivered, or as `elsewhere` says where others bring it there. */
export interface Holding {
  readonly object: ObjectRef;
  /** Those of its files that this side uses, `<node>` standing for the name of its node; absent: all of them. */
  readonly files?: readonly string[] | undefined;
  readonly elsewhere?:
    | {
        readonly file: string;
        readonly takes: Takes;
        readonly by: string;
        /**
         * How one can know what the process has loaded: the agent of its node reports it, or its pod says with which bundle it was
         * started. Absent, and where nothing is said of reading again: nobody can tell.
         */
        readonly seenBy?: 'agent' | 'pod' | undefined;
        /** Kubelets bring it as `kube-root-ca.crt` of its namespace, and it is known to have read that again after this long, as the source says. */
        readonly rereads?: { readonly withinMs: number; readonly source: string } | undefined;
      }
    | undefined;
}

/** A certificate that is in no object of ours, whose issuer is in this bundle. */
export interface Foreign {
  readonly issuerIn: ObjectRef;
  readonly file: string;
  readonly takes: Takes;
  readonly by: string;
}

export interface Endpoint {
  /** `https://<host>:<port>`; `<...>` stands for what only the cluster knows. */
  readonly url: string;
  /** The name asked for in the handshake; the host of the URL when absent. */
  readonly serverName?: string | undefined;
}

export function deliveriesOf({ deliveries }: TrustGraph, object: ObjectRef): Delivery[] {
  return deliveries.filter(delivery => isSameObject(delivery.object, object));
}

/** Where one side has an object, and how it takes a change of it. */
export interface Place {
  readonly object: ObjectRef;
  readonly files: readonly string[];
  readonly takes: Takes;
  readonly delivery?: Delivery | undefined;
}

/** Looks up where a side has what it holds; undefined where the graph does not say. */
export function placeOf(graph: TrustGraph, { process }: Side, held: Holding): Place | undefined {
  const { object, elsewhere } = held;
  if (elsewhere !== undefined) return { object, files: [elsewhere.file], takes: elsewhere.takes };
  for (const delivery of deliveriesOf(graph, object)) {
    const use = delivery.uses.find(candidate => candidate.process === process);
    if (use === undefined) continue;
    const files = (held.files ?? delivery.files).map(name => `${delivery.hostDirectory}/${name}`);
    // A revisioned file never changes in place, whatever its reader could do (spec 20, section 7).
    const takes = delivery.carrier === 'revision' ? 'restart' : use.takes;
    return { object, files, takes, delivery };
  }
  return undefined;
}

/** Several graphs as one. */
export function joinGraphs(...graphs: readonly TrustGraph[]): TrustGraph {
  return {
    deliveries: graphs.flatMap(graph => graph.deliveries),
    flows: graphs.flatMap(graph => graph.flows),
    edges: graphs.flatMap(graph => graph.edges),
  };
}
