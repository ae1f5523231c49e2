import { screen } from '@testing-library/react';
import { vi } from 'vitest';
import type { Letter, Permission } from '@/api/types';
import { show, somebody, type Sent } from '@/shared/testing/render';
import { EditDialog } from './EditDialog';

export const ALL: Permission[] = ['letters:read', 'letters:reveal', 'letters:edit', 'runs:make'];
export const AROUND = ['{"message_id":"m","timestamp":"t","version":"1.0","source":"s","queue":"orders","data":', ',"metadata":{},"error":null,"retry_count":0}'] as const;
export const DATA = '{"cpf":"529.982.247-25","big":12345678901234567890,"price":1.10}';

export function aLetter(data: string, more: Partial<Letter> = {}, headers: unknown[] = [['tenant', 'acme']]): Letter {
  const message = {
    id: 'm',
    source: 's',
    queue: 'orders',
    sent_at: '2026-11-16T10:00:00Z',
    headers,
    key: null,
    key_encoding: null,
    body: AROUND[0] + data + AROUND[1],
    body_encoding: 'utf-8' as const,
    properties: null,
  };
  return { id: 'l1', status: 'PENDING', queue: 'orders', revision: 0, unreadable: null, message, revisions: [], failures: [], history: [], ...more } as unknown as Letter;
}

export const MASKED = aLetter('{"cpf":"[masked]","big":12345678901234567890,"price":1.10}');
export const REVEAL = 'POST /api/v1/dlq/l1/reveal';
export const SAVE = 'POST /api/v1/dlq/l1/revisions';
export const saves = (sent: Sent[]) => sent.filter((each) => each.path.endsWith('/revisions')).map((each) => each.body as Record<string, unknown>);

export function open(letter: Letter = MASKED, permissions: Permission[] = ALL) {
  const onSaved = vi.fn();
  const onClose = vi.fn();
  const shown = show(<EditDialog letter={letter} opened onClose={onClose} onSaved={onSaved} />, { me: somebody(permissions), at: '/letters/l1' });
  return { ...shown, onSaved, onClose };
}

export async function reveal(user: ReturnType<typeof open>['user']) {
  await user.type(await screen.findByLabelText(/^Why/), 'wrong price');
  await user.click(screen.getByRole('button', { name: 'Show the real text and edit it' }));
  return screen.findByRole('textbox', { name: 'Payload' });
}
