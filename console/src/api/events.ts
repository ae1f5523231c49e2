import { urlOf } from './client';
import type { RunJson } from './types';

export type RunNews = Pick<
  RunJson,
  'id' | 'status' | 'why' | 'changed_at' | 'ended_at' | 'stage' | 'total' | 'remaining' | 'progress' | 'summary' | 'estimated_end' | 'in_doubt'
>;

const ENDED: ReadonlySet<string> = new Set(['DONE', 'FAILED', 'CANCELLED', 'STOPPED']);

export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

const AGAIN = 5_000;

/**
 * What changes while a run goes on, until it has ended. A connection that breaks is made again: by the browser, and
 * where that has given up (an answer such as 503) by us. Returns how to stop.
 */
export function watchRun(runId: string, onNews: (news: RunNews) => void, onLive?: (live: boolean) => void): () => void {
  let again: ReturnType<typeof setTimeout> | undefined;
  let source: EventSource;
  const connect = () => {
    source = new EventSource(urlOf('/api/v1/runs/{run_id}/events', { run_id: runId }));
    source.addEventListener('open', () => onLive?.(true));
    source.addEventListener('error', () => {
      onLive?.(false);
      if (source.readyState === CLOSED) again = setTimeout(connect, AGAIN);
    });
    source.addEventListener('progress', (event: MessageEvent<string>) => {
      const news = JSON.parse(event.data) as RunNews;
      onNews(news);
      if (hasEnded(news.status)) source.close();
    });
  };
  connect();
  return () => {
    clearTimeout(again);
    source.close();
  };
}

/** `EventSource.CLOSED`: the browser does not try again. */
const CLOSED = 2;
