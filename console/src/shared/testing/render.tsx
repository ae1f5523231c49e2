import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { render } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import axe from 'axe-core';
import type { ReactNode } from 'react';
import { createMemoryRouter, RouterProvider } from 'react-router';
import { expect, vi } from 'vitest';
import { createQueryClient } from '@/api/query-client';
import type { Myself, Permission } from '@/api/types';
import { en } from '@/locales/en';
import { LanguageProvider } from '@/locales/language';
import type { Language, Messages } from '@/locales/messages';
import { KeysProvider } from '@/shared/keys';
import { SessionProvider } from '@/shared/session';
import { theme } from '@/shared/theme/theme';
import { ToastProvider } from '@/shared/toasts';

/** Somebody who may do that, for these queues. */
export function somebody(permissions: Permission[] = ['letters:read'], queues: string[] = ['*']): Myself {
  return {
    name: 'ann',
    grants: [{ role: 'operator', queues }],
    permissions: Object.fromEntries(permissions.map((each) => [each, queues])),
  };
}

interface How {
  me?: Myself;
  /** Where the page is: `/letters#q=queue:orders`. */
  at?: string;
  /** The route that it is at, with its names: `/letters/:id`. */
  path?: string;
  language?: Language;
  messages?: Messages;
}

/** A part of the console with everything around it. Gives back the user who clicks and types, and the router. */
export function show(node: ReactNode, { me = somebody(), at = '/', path = '*', language = 'en', messages = en }: How = {}) {
  const inner = (
    <SessionProvider me={me}>
      <KeysProvider>{node}</KeysProvider>
    </SessionProvider>
  );
  const router = createMemoryRouter([{ path, element: inner }, { path: '*', element: null }], { initialEntries: [at] });
  const user = userEvent.setup();
  const shown = render(
    <MantineProvider theme={theme} env="test" withCssVariables={false} withGlobalClasses={false}>
      <LanguageProvider language={language} messages={messages}>
        <QueryClientProvider client={createQueryClient()}>
          <ToastProvider>
            <RouterProvider router={router} />
          </ToastProvider>
        </QueryClientProvider>
      </LanguageProvider>
    </MantineProvider>,
  );
  return { ...shown, user, router };
}

export interface Sent {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
}

type Reply = unknown;

/**
 * The server for this test: `{ 'GET /api/v1/queues': { items: [] } }`. A function is told what was sent, and may
 * answer later by a promise; a Response is sent as it is. What is not named is 404. Gives back the list of what was
 * asked, as it grows.
 */
export function serve(replies: Record<string, Reply>): Sent[] {
  const all: Sent[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) => {
    const { pathname, searchParams } = new URL(url, 'http://redrive.test');
    const body: unknown = typeof init.body === 'string' ? JSON.parse(init.body) : undefined;
    const sent = { method: init.method ?? 'GET', path: pathname, query: searchParams, body };
    all.push(sent);
    const found = replies[`${sent.method} ${pathname}`];
    const reply: unknown = typeof found === 'function' ? (found as (sent: Sent) => unknown)(sent) : found;
    return Promise.resolve(reply).then(responseOf);
  });
  return all;
}

function responseOf(reply: unknown): Response {
  if (reply instanceof Response) return reply.clone();
  if (reply === undefined) return problem(404, 'nothing there');
  return new Response(JSON.stringify(reply), { headers: { 'content-type': 'application/json' } });
}

/** An answer that tells of a problem. */
export function problem(status: number, detail: string, more: object = {}, headers: Record<string, string> = {}): Response {
  const body = JSON.stringify({ status, title: 'Problem', detail, remedy: '', request_id: 'r-1', column: null, ...more });
  return new Response(body, { status, headers: { 'content-type': 'application/problem+json', ...headers } });
}

/** No serious finding for those who listen or use the keyboard alone. (Colours are looked at in a browser.) */
export async function expectAccessible(element: Element): Promise<void> {
  const { violations } = await axe.run(element, { rules: { 'color-contrast': { enabled: false }, region: { enabled: false } } });
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.html).join(' ')}`)).toEqual([]);
}
