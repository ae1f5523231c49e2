import { Button } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useText } from '@/locales/language';
import classes from './LoadMore.module.css';

/** What it needs of an infinite query. */
interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  fetchNextPage: () => unknown;
}

/** The end of an endless list: the next page comes when it is seen, or when it is pressed. */
export function LoadMore({ query }: { query: Pages }) {
  const { shared } = useText();
  const ref = useRef<HTMLDivElement>(null);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = query;
  const ready = hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (!ready || ref.current === null || typeof IntersectionObserver === 'undefined') return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting === true && fetchNextPage(), { rootMargin: '400px' });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, [ready, fetchNextPage]);
  return (
    <div ref={ref} className={classes.more}>
      {hasNextPage ? (
        <Button loading={isFetchingNextPage} onClick={() => fetchNextPage()}>
          {shared.more}
        </Button>
      ) : (
        <span className="rd-dim">{shared.all}</span>
      )}
    </div>
  );
}
