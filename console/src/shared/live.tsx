import { createContext, use, useMemo, useState, type ReactNode } from 'react';
import { keep, kept } from './kept';

interface Live {
  /** Whether lists refresh by themselves. */
  live: boolean;
  toggle: () => void;
}

const LiveContext = createContext<Live>({ live: true, toggle: () => undefined });
const KEPT_AS = 'redrive.live';

export function LiveProvider({ children }: { children: ReactNode }) {
  const [live, setLive] = useState(() => kept(KEPT_AS) !== 'off');
  const value = useMemo(
    () => ({
      live,
      toggle: () => {
        keep(KEPT_AS, live ? 'off' : 'on');
        setLive(!live);
      },
    }),
    [live],
  );
  return <LiveContext value={value}>{children}</LiveContext>;
}

export const useLive = (): Live => use(LiveContext);

/** For `refetchInterval`: so many milliseconds while the console is live, and not at all while it is paused. */
export function useLiveEvery(milliseconds: number): number | false {
  return useLive().live ? milliseconds : false;
}
