import { createContext, use, type ReactElement, type ReactNode } from 'react';
import { may, useAbout } from '@/api/session';
import type { Myself, Permission } from '@/api/types';
import { useText } from '@/locales/language';
import { Refusable } from './Refusable';

const SessionContext = createContext<Myself | null>(null);

export function SessionProvider({ me, children }: { me: Myself; children: ReactNode }) {
  return <SessionContext value={me}>{children}</SessionContext>;
}

/** Whoever is signed in. */
export function useSession(): Myself {
  const me = use(SessionContext);
  if (me === null) throw new Error('nobody is signed in here');
  return me;
}

/** For what is not about one queue: only who may do it everywhere may do it there. */
export const EVERY_QUEUE = '*';

type Can = (permission: Permission, queue?: string) => boolean;

/** `can('runs:make')`: anywhere at all; `can('runs:make', 'orders')`: in that queue. */
export function useCan(): Can {
  const me = useSession();
  return (permission, queue) => may(me, permission, queue);
}

const READING: ReadonlySet<Permission> = new Set(['letters:read', 'letters:reveal', 'letters:export', 'audit:read']);

/** Why they may not do that; null: they may. */
export function useRefusal(permission: Permission, queue?: string): string | null {
  const { shared } = useText();
  const can = useCan();
  const about = useAbout();
  if (!can(permission, queue)) {
    if (queue === undefined) return shared.permission.lacking(permission);
    return queue === EVERY_QUEUE ? shared.permission.lackingInAll(permission) : shared.permission.lackingIn(permission, queue);
  }
  return about.data?.read_only === true && !READING.has(permission) ? shared.permission.readOnly : null;
}

interface Props {
  to: Permission;
  queue?: string;
  /** A button or an input; it is told whether it is disabled. */
  children: (disabled: boolean) => ReactElement;
}

/** What one may not do is shown all the same, disabled, with the permission that is lacking. */
export function Permitted({ to, queue, children }: Props) {
  return <Refusable reason={useRefusal(to, queue)}>{children}</Refusable>;
}
