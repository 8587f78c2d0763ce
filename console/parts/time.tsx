import { useEffect, useState } from 'preact/hooks';
import { secondsText, shortDuration } from '../../src/cli/output/time.ts';
import { serverNow } from '../live.ts';

/** The time at the server, every second. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow());
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** How far away a moment is; the moment itself when one points at it. */
export function Relative({ at, now }: { at: string | undefined; now: number }) {
  if (at === undefined || at === '') return <span>-</span>;
  const distance = Date.parse(at) - now;
  const text = shortDuration(Math.abs(distance));
  return (
    <time dateTime={at} title={secondsText(at)} class="nowrap">
      {distance >= 0 ? `in ${text}` : `${text} ago`}
    </time>
  );
}

export function Moment({ at }: { at: string }) {
  const text = secondsText(at);
  return (
    <time dateTime={at} class="nowrap">
      {text.replace('T', ' ').replace('Z', ' UTC')}
    </time>
  );
}
