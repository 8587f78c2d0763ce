import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

export interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Asks over a connection of its own, with any header. */
export async function call(url: string, { method = 'GET', headers = {}, body }: Call = {}): Promise<Answer> {
  const ask = url.startsWith('https:') ? tlsRequest : request;
  const asked = ask(url, { method, headers, agent: false, rejectUnauthorized: false });
  asked.end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

/** Sends JSON. */
export function post(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return call(url, { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } });
}

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Reads server-sent events. */
export class EventReader {
  readonly #answer: IncomingMessage;
  readonly #messages: Message[] = [];
  #news = Promise.withResolvers<void>();

  private constructor(answer: IncomingMessage) {
    this.#answer = answer;
    let text = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      const parts = (text + chunk).split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? '';
        if (field('event') !== '') this.#messages.push({ id: field('id'), event: field('event'), data: field('data') });
      }
      this.#news.resolve();
      this.#news = Promise.withResolvers();
    });
    answer.on('error', () => {});
  }

  static async open(url: string, headers: Readonly<Record<string, string>>): Promise<EventReader> {
    const asked = request(`${url}/api/live`, { headers, agent: false });
    asked.end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    if (answer.statusCode !== 200) answer.resume();
    assert.equal(answer.statusCode, 200);
    return new EventReader(answer);
  }

  async next(is: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const found = this.#messages.find(is);
      if (found !== undefined) return found;
      await this.#news.promise;
    }
  }

  close(): void {
    this.#answer.destroy();
  }
}
