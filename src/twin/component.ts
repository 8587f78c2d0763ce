import { silentLog } from '../controller/log.ts';
import type { Clock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { type EventRecorder, eventsTo, type RecordedEvent } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import type { Api } from './api.ts';
import type { Time } from './time.ts';

/** What a component of the twin works with: its ports. */
export interface Tools {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: typeof silentLog;
  /** The clock by which it keeps leases. */
  readonly leaseClock: Clock;
  /** Tells this life of the process from every other. */
  readonly identity: string;
}

/** What a process does until `signal` aborts. */
export type Work = (tools: Tools, signal: AbortSignal) => Promise<unknown>;

export interface ComponentWorld {
  readonly time: Time;
  readonly api: Api;
  /** Told of every event that a component records. */
  onEvent(by: string, event: RecordedEvent): void;
  /** Told when a component starts and ends. */
  tell(what: string): void;
}

/** Somebody starts a process that ended after this time, as kubelets and systemd do. */
const RESTART_MS = seconds(10);

/** One process: it can be killed between any two of its calls, and knows nothing of its life before when it is started again. */
export class Component {
  readonly name: string;
  readonly #world: ComponentWorld;
  readonly #work: Work;
  /** How far its clock is wrong. */
  skewMs = 0;
  #life: AbortController | undefined;
  #lives = 0;
  #isWanted = false;

  constructor(world: ComponentWorld, name: string, work: Work) {
    this.name = name;
    this.#world = world;
    this.#work = work;
  }

  get isRunning(): boolean {
    return this.#life !== undefined;
  }

  /** From now on it runs, and is started again when it ends. */
  start(): void {
    this.#isWanted = true;
    if (this.#life === undefined) this.#begin();
  }

  /** It is gone at once: what it was about to write is not written. */
  stop(): void {
    this.#isWanted = false;
    this.#end('stopped');
  }

  /** It dies, and comes back after a while. */
  kill(comesBackMs: number = RESTART_MS): void {
    if (this.#life === undefined) return;
    this.#world.tell(`${this.name} is killed`);
    this.#end('killed');
    this.#beginLater(comesBackMs);
  }

  /** Another instance takes over while this one is in the middle of its work; returns what ends this one. */
  takeOver(): () => void {
    const before = this.#life;
    this.#life = undefined;
    this.#begin();
    return () => before?.abort(new Error('is not the leader any more'));
  }

  #begin(): void {
    const { time, api } = this.#world;
    const life = new AbortController();
    this.#life = life;
    const name = `${this.name} ${++this.#lives}`;
    const tools: Tools = {
      kube: api.connect(this.name, life.signal),
      clock: time.clock(name, this.skewMs),
      events: eventsTo(this.name, event => this.#world.onEvent(this.name, event)),
      log: silentLog,
      leaseClock: time.awakeClock(`${name} leases`, this.skewMs),
      identity: name,
    };
    this.#work(tools, life.signal).then(
      () => this.#ended(life, 'ends'),
      (error: unknown) => this.#ended(life, `ends: ${(error as Error).message.split('\n')[0]}`),
    );
  }

  #ended(life: AbortController, how: string): void {
    if (this.#life !== life) return;
    this.#life = undefined;
    life.abort(new Error(how));
    this.#world.tell(`${this.name} ${how}`);
    this.#beginLater(RESTART_MS);
  }

  #end(why: string): void {
    const life = this.#life;
    this.#life = undefined;
    life?.abort(new Error(why));
  }

  #beginLater(milliseconds: number): void {
    void this.#world.time.after(milliseconds).then(() => {
      this.#world.time.changed();
      if (this.#isWanted && this.#life === undefined) this.#begin();
    });
  }
}
