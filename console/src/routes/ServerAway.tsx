import { Button } from '@mantine/core';
import { IconPlugConnectedX } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useAway } from '@/api/availability';
import { ready } from '@/api/health';
import { useText } from '@/locales/language';
import classes from './ServerAway.module.css';

/** While the server does not answer: says so, asks again, and refreshes everything once it is back. */
export function ServerAway() {
  const { shell } = useText();
  const away = useAway();
  const client = useQueryClient();
  const [now, setNow] = useState(() => Date.now());
  const [again, missing] = [away?.again ?? 0, away !== null];
  const tryNow = useCallback(() => {
    ready().catch(() => undefined);
  }, []);
  // Whichever request has found it back: what does not refresh by itself is old, too.
  const was = useRef(false);
  useEffect(() => {
    if (was.current && !missing) void client.invalidateQueries();
    was.current = missing;
  }, [missing, client]);
  useEffect(() => {
    if (!missing) return;
    const asking = setTimeout(tryNow, Math.max(500, again - Date.now()));
    const ticking = setInterval(() => setNow(Date.now()), 1000);
    return () => {
      clearTimeout(asking);
      clearInterval(ticking);
    };
  }, [missing, again, tryNow]);
  if (!missing) return null;
  return (
    <div role="alert" className={classes.banner}>
      <IconPlugConnectedX size={16} aria-hidden />
      <span>
        <strong>{shell.away.title}</strong> {shell.away.again(Math.max(0, Math.ceil((again - now) / 1000)))}
      </span>
      <Button onClick={tryNow}>{shell.away.now}</Button>
    </div>
  );
}
