import type { IncomingMessage, ServerResponse } from 'node:http';
import { seconds } from '../../kube/duration.ts';
import type { FeedMessage } from './feed.ts';
import { HttpProblem } from './http.ts';
import { assertNoKeyMaterial } from './key-material.ts';
import type { Session } from './sessions.ts';

const MOST_STREAMS_OF_SESSION = 8;
/** Somebody who reads so slowly comes back later and gets a new snapshot. */
const MOST_UNREAD_BYTES = 8 * 1024 * 1024;
const HEARTBEAT_MS = seconds(15);
/** Before a browser connects again. */
const RETRY_MS = 1000;

/** Sends the live model as server-sent events: a snapshot, or what was missed since `Last-Event-ID`, then patches. */
export async function streamModel(request: IncomingMessage, response: ServerResponse, session: Session): Promise<void> {
  const { principal, streams } = session;
  const { feed } = principal;
  if (streams.size >= MOST_STREAMS_OF_SESSION) throw new HttpProblem(429, 'too many pages are open in this session');
  const end = () => response.end();
  // Taken before anything is waited for: many requests at once are many requests.
  streams.add(end);
  response.on('close', () => streams.delete(end));
  await feed.start();
  if (response.destroyed || response.writableEnded) return;
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    connection: 'keep-alive',
  });
  // A session may end before its reader has taken everything; what is written then is an error that nobody would hear.
  const write = (text: string) => response.writableEnded || response.write(text);
  const send = ({ id, event, data }: FeedMessage) => {
    assertNoKeyMaterial(data, 'the stream');
    write(`id: ${id}\nevent: ${event}\ndata: ${data}\n\n`);
    if (response.writableLength > MOST_UNREAD_BYTES) response.destroy();
  };
  write(`retry: ${RETRY_MS}\n\n`);
  const seen = request.headers['last-event-id'];
  const missed = typeof seen === 'string' ? feed.since(seen) : undefined;
  for (const message of missed ?? [feed.snapshot()]) send(message);
  const unsubscribe = feed.subscribe(send);
  const heartbeat = setInterval(() => write(': alive\n\n'), HEARTBEAT_MS);
  response.on('close', () => {
    clearInterval(heartbeat);
    unsubscribe();
  });
}
