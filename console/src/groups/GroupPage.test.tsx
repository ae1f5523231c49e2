import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { FailureGroup } from '@/api/types';
import { expectAccessible, problem, serve, show, somebody } from '@/shared/testing/render';
import { GroupPage } from './GroupPage';
import { aGroup } from './testing-groups';

const anybody = somebody(['letters:read', 'runs:make', 'letters:decide', 'groups:change']);
const usual = (group: FailureGroup, more: Record<string, unknown> = {}) => ({
  'GET /api/v1/about': { version: '1', read_only: false, environment: '', production: false, sign_in: [] },
  'GET /api/v1/groups/g': group,
  'GET /api/v1/groups/g/common': {
    here: 200,
    elsewhere: 100,
    commonalities: [
      { name: 'data.country', relation: 'is', value: 'PT', value_type: 'string', here: 194, elsewhere: 12, filter: 'data.country:PT' },
      { name: 'header.trace', relation: 'missing', value: null, value_type: null, here: 150, elsewhere: 0, filter: null },
    ],
  },
  'GET /api/v1/groups/g/attempts': {
    letters: 200,
    attempts: [
      { attempt: 1, kind: 'transient', failed: 200 },
      { attempt: 2, kind: 'permanent', failed: 8 },
      { attempt: 2, kind: 'transient', failed: 180 },
    ],
  },
  'GET /api/v1/groups/g/redrives': {
    letters: 12,
    runs: [{ run_id: 'r1', by: 'ann', first_at: group.first_seen, last_at: group.last_seen, outcomes: { confirmed: 3, 'came back': 1 } }],
  },
  'GET /api/v1/dlq': { items: [], next: null, previous: null, count: { number: 0, exact: true }, unsearched: 0 },
  ...more,
});
const showGroup = (replies: Record<string, unknown>, me = anybody) => {
  const sent = serve(replies);
  return { sent, ...show(<GroupPage />, { me, at: '/groups/g', path: '/groups/:id' }) };
};

test('one sees what it is, how many, and what they have in common', async () => {
  const { container } = showGroup(usual(aGroup('g')));
  const title = 'shop.errors.NoCustomerorder <number> of g has no customer';
  await waitFor(() => expect(screen.getByRole('heading', { level: 1 })).toHaveTextContent(title));
  const country = (await screen.findByText('data.country')).closest('li')!;
  expect(country).toHaveTextContent('data.country= PThere97%194 of 200elsewhere12%12 of 100');
  expect(within(country).getByRole('link')).toHaveAttribute('href', '/letters#q=group%3Ag+data.country%3APT');
  expect(screen.getByText('is missing').closest('li')!.querySelector('a')).toBeNull();
  expect(await screen.findByText('75% went well')).toBeInTheDocument();
  expect(screen.getByText('Attempt 2').closest('li')).toHaveTextContent('1888 permanent, 180 transient');
  await expectAccessible(container);
});

test('a runbook is a link only if it is a web address', async () => {
  const { container } = showGroup(usual(aGroup('g', { runbook: 'javascript:alert(1)' })));
  expect(await screen.findByText('javascript:alert(1)')).toBeInTheDocument();
  expect(container.querySelector('a[href^="javascript"]')).toBeNull();
});

test('a runbook opens elsewhere, and what is there does not know from where', async () => {
  showGroup(usual(aGroup('g', { runbook: 'https://wiki.example.org/17' })));
  const link = await screen.findByRole('link', { name: 'https://wiki.example.org/17' });
  expect(link).toHaveAttribute('rel', 'noopener noreferrer');
});

test('only what was changed is saved', async () => {
  const saved = aGroup('g', { owner: 'payments', note: 'old' });
  const { sent, user } = showGroup(usual(aGroup('g', { note: 'old' }), { 'PATCH /api/v1/groups/g': saved }));
  await user.click(await screen.findByRole('button', { name: 'Edit' }));
  fireEvent.change(await screen.findByLabelText('Runbook'), { target: { value: 'javascript:1' } });
  expect(screen.getByRole('button', { name: 'Save' })).toBeDisabled();
  fireEvent.change(screen.getByLabelText('Runbook'), { target: { value: '' } });
  fireEvent.change(screen.getByLabelText('Owner'), { target: { value: 'payments' } });
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(sent.find((each) => each.method === 'PATCH')?.body).toEqual({ owner: 'payments' }));
  expect(await screen.findByText('Saved')).toBeInTheDocument();
});

test('whoever saves what somebody else has changed meanwhile is asked', async () => {
  const groups = [aGroup('g', { owner: 'ann' })];
  const { sent, user } = showGroup(
    usual(groups[0]!, { 'GET /api/v1/groups/g': () => groups[0], 'PATCH /api/v1/groups/g': aGroup('g', { owner: 'me' }) }),
  );
  await user.click(await screen.findByRole('button', { name: 'Edit' }));
  fireEvent.change(screen.getByLabelText('Owner'), { target: { value: 'me' } });
  groups[0] = aGroup('g', { owner: 'bo', note: 'theirs' });
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(await screen.findByRole('alert')).toHaveTextContent('bo');
  expect(sent.some((each) => each.method === 'PATCH')).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Save mine all the same' }));
  await waitFor(() => expect(sent.find((each) => each.method === 'PATCH')?.body).toEqual({ owner: 'me' }));
});

test('what one may not do is there, disabled, with the permission', async () => {
  showGroup(usual(aGroup('g')), somebody(['letters:read']));
  expect(await screen.findByRole('button', { name: 'Redrive 7 letters' })).toBeDisabled();
  expect(screen.getByRole('group', { name: /runs:make/ })).toBeInTheDocument();
  expect(screen.getByRole('button', { name: 'Edit' })).toBeDisabled();
});

test('somebody who said not to replay is heard', async () => {
  showGroup(usual(aGroup('g', { verdict: 'do not replay' })));
  expect(await screen.findByRole('note')).toHaveTextContent('do not replay');
});

test('other groups are merged into this one, for a reason', async () => {
  const { sent, user } = showGroup(
    usual(aGroup('g'), {
      'GET /api/v1/groups': { items: [aGroup('g'), aGroup('other', { total: 31 })], next: null },
      'POST /api/v1/groups/g/merge': aGroup('g', { merged: ['other'] }),
    }),
  );
  await user.click(await screen.findByRole('button', { name: 'More' }));
  await user.click(await screen.findByRole('menuitem', { name: /Merge/ }));
  await user.click(await screen.findByRole('checkbox', { name: /of other has/ }));
  expect(screen.queryByRole('checkbox', { name: /of g has/ })).toBeNull();
  fireEvent.change(screen.getByLabelText(/Why/), { target: { value: 'the same fault' } });
  await user.click(screen.getByRole('button', { name: 'Merge 1 group with 31 letters' }));
  await waitFor(() =>
    expect(sent.find((each) => each.path.endsWith('/merge'))?.body).toEqual({ others: ['other'], reason: 'the same fault' }),
  );
});

test('a group that is gone says so', async () => {
  showGroup({ 'GET /api/v1/groups/g': problem(404, 'no group g') });
  expect(await screen.findByText('There is no such group')).toBeInTheDocument();
});
