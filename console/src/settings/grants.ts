import type { Grant, Myself, Role } from '@/api/types';

/** A grant as it is being written. */
export interface Draft {
  role: Role;
  /** With commas between; empty: all. */
  queues: string;
}

export const draftOf = ({ role, queues }: Grant): Draft => ({ role, queues: queues.includes('*') ? '' : queues.join(', ') });

export function grantOf({ role, queues }: Draft): Grant {
  const named = queues
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');
  return { role, queues: named.length === 0 ? ['*'] : named };
}

/** Whether they could grant it at all, for some queue: nobody grants what they do not have. Workers' tokens are the exception. */
export const grantable = (me: Myself, allowed: readonly string[]): boolean =>
  allowed.every((each) => each === 'letters:record' || me.permissions[each] !== undefined);
