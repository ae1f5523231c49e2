import type { ApiToken } from '@/api/types';

export type TokenState = 'live' | 'expired' | 'revoked';

export function stateOf({ revoked_at, expires_at }: ApiToken, now: number): TokenState {
  if (revoked_at !== null) return 'revoked';
  return Date.parse(expires_at) > now ? 'live' : 'expired';
}
