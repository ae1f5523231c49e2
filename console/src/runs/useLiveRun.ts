import { useEffect, useRef } from 'react';
import { hasEnded } from '@/api/events';
import { useRun, useRunNews } from '@/api/runs';
import { useLive } from '@/shared/live';
import { figuresOf } from './run-figures';

/** Without a stream, a run is asked about that often; with one, only for what the stream does not tell. The
 *  stream ends when everything is sent, and somebody still looks for what comes of it. */
const EVERY = { asking: 3_000, streaming: 8_000, sent: 3_000, ended: 20_000 };

export type Freshness = 'live' | 'asking' | 'still' | 'ended';

/** A run, as new as it can be: by its stream of events, or by asking while that is away. */
export function useLiveRun(id: string) {
  const query = useRun(id);
  const { live } = useLive();
  const run = query.data?.run;
  const ended = run !== undefined && hasEnded(run.status);
  const streaming = useRunNews(id, live ? run?.status : undefined);
  const freshness: Freshness = ended ? 'ended' : !live ? 'still' : streaming ? 'live' : 'asking';
  const { refetch } = query;
  const quiet = run !== undefined && figuresOf(run).without_word > 0;
  const pace = ended ? (quiet ? EVERY.sent : EVERY.ended) : streaming ? EVERY.streaming : EVERY.asking;
  const shown = run !== undefined;
  useEffect(() => {
    if (!live || !shown) return;
    const timer = setInterval(() => void refetch(), pace);
    return () => clearInterval(timer);
  }, [live, shown, pace, refetch]);
  // The stream tells that something changed; the history tells who did it.
  const status = run?.status;
  const known = useRef<{ id: string; status: string }>(null);
  useEffect(() => {
    if (status === undefined) return;
    const changed = known.current?.id === id && known.current.status !== status;
    known.current = { id, status };
    if (changed) void refetch({ cancelRefetch: false });
  }, [id, status, refetch]);
  return { query, freshness };
}
