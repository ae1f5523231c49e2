/** What the ledger knows, by what it is done to. Other words may come with other versions: those are shown as they are. */
export const DEEDS: Record<string, readonly string[]> = {
  letters: [
    ...['resolved', 'discarded', 'restored', 'quarantined', 'released', 'edited', 'purged', 'expired', 'imported'],
    ...['revealed', 'exported unmasked', 'claim taken over', 'erased'],
  ],
  run: ['requested', 'approved', 'rejected', 'paused', 'resumed', 'cancelled', 'stopped', 'finished', 'failed'],
  group: ['annotated', 'merged into', 'split off'],
  alert: ['alert acknowledge', 'alert snooze', 'alert wake', 'alert resolve'],
  token: ['token made', 'token revoked', 'bootstrap code redeemed'],
  user: ['user added', 'password set', 'grants set', 'user disabled', 'user enabled', 'sessions ended'],
  keys: ['keys rotated', 'keys shredded'],
  erasure: ['erasure requested', 'erasure approved', 'erasure rejected', 'erasure ended'],
  ledger: ['signed', 'key changed', 'seal broken', 'environment'],
};

const DENIED = 'denied ';

/** The permission that was lacking, if that is what a row is about. */
export const lacking = (what: string): string | null => (what.startsWith(DENIED) ? what.slice(DENIED.length) : null);
