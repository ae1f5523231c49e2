import type { FailureJson, Letter, LetterLine } from '@/api/types';

const NOON = '2026-03-01T12:00:00+00:00';

export const aLine = (id: string, more: Partial<LetterLine> = {}): LetterLine => ({
  id,
  status: 'PENDING',
  how: null,
  queue: 'orders',
  handler: 'charge',
  kind: 'permanent',
  type: 'shop.errors.NoCustomer',
  text: `no customer ${id}`,
  group_id: 'g',
  identity: '',
  generation: 1,
  revision: 0,
  deliveries: 1,
  attempts: 3,
  created_at: NOON,
  first_attempt_at: NOON,
  last_attempt_at: NOON,
  changed_at: NOON,
  message_id: 'm',
  ...more,
});

export const aFailure = (attempt: number, at: string, more: Partial<FailureJson> = {}): FailureJson => ({
  generation: 1,
  attempt,
  at,
  kind: 'transient',
  handler: 'charge',
  host: { name: 'worker-1', process: 7, app: 'shop', app_version: '1.4', environment: 'test' },
  chain: [{ type: 'TimeoutError', text: `timed out ${attempt}`, link: '', frames: [] }],
  trace: 'Traceback',
  ...more,
});

export function aLetter(more: Partial<Letter> = {}): Letter {
  const message: Letter['message'] = {
    id: 'm-1',
    source: 'webshop',
    queue: 'orders',
    sent_at: NOON,
    headers: [],
    key: null,
    key_encoding: null,
    body: '{"order": 12345678901234567890}',
    body_encoding: 'utf-8',
    properties: null,
    body_size: 31,
    header_count: 0,
  };
  return {
    ...aLine('letter-1'),
    lane: null,
    blocked_by: null,
    unreadable: null,
    message,
    failures: [aFailure(1, '2026-03-01T12:00:01+00:00'), aFailure(2, '2026-03-01T12:00:31+00:00')],
    revisions: [{ number: 0, at: NOON, by: 'consumer', reason: '', message, unreadable: null }],
    history: [{ at: '2026-03-01T12:00:31+00:00', by: 'consumer', what: 'recorded', before: '', after: 'PENDING', reason: '' }],
    ...more,
  };
}
