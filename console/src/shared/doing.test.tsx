import { screen, waitFor } from '@testing-library/react';
import { Button } from '@mantine/core';
import { describe, expect, test, vi } from 'vitest';
import { ApiProblem } from '@/api/problem';
import { ConfirmDialog } from './ConfirmDialog';
import { CopyButton } from './CopyButton';
import { useKeys } from './keys';
import { Permitted } from './session';
import { expectAccessible, serve, show, somebody } from './testing/render';

const ABOUT = { version: '1', environment: '', production: false, read_only: false, features: { oidc: false, local_users: true } };

describe('a confirmation', () => {
  const asked = { opened: true, title: 'Discard letters', confirm: 'Discard 1,204 letters' };

  test('names the number, wants its reason, and closes when it is done', async () => {
    const [onConfirm, onClose] = [vi.fn().mockResolvedValue(null), vi.fn()];
    const { user, baseElement } = show(<ConfirmDialog {...asked} reason="required" onConfirm={onConfirm} onClose={onClose} />);
    const button = screen.getByRole('button', { name: 'Discard 1,204 letters' });
    expect(button).toBeDisabled();
    await expectAccessible(baseElement);
    expect(screen.queryByRole('banner')).toBeNull();
    expect(baseElement.querySelector('header')).toHaveAttribute('role', 'presentation');
    await user.type(screen.getByLabelText(/Why/), ' they are old ');
    await user.click(button);
    expect(onConfirm).toHaveBeenCalledWith('they are old');
    await waitFor(() => expect(onClose).toHaveBeenCalled());
  });

  test('of what cannot be undone wants the exact number typed', async () => {
    const onConfirm = vi.fn().mockResolvedValue(null);
    const { user } = show(<ConfirmDialog {...asked} typed={1204} onConfirm={onConfirm} onClose={vi.fn()} />);
    const button = screen.getByRole('button', { name: 'Discard 1,204 letters' });
    await user.type(screen.getByLabelText('Type 1,204 to confirm'), '120');
    expect(button).toBeDisabled();
    await user.type(screen.getByLabelText('Type 1,204 to confirm'), '4');
    expect(button).toBeEnabled();
  });

  test('that fails stays open with the problem', async () => {
    const onClose = vi.fn();
    const refused = new ApiProblem({ status: 409, detail: 'it is RESOLVED' });
    const { user } = show(<ConfirmDialog {...asked} onConfirm={() => Promise.reject(refused)} onClose={onClose} />);
    await user.click(screen.getByRole('button', { name: 'Discard 1,204 letters' }));
    expect(await screen.findByText('it is RESOLVED')).toBeInTheDocument();
    expect(onClose).not.toHaveBeenCalled();
  });
});

describe('keys', () => {
  const [next, go] = [vi.fn(), vi.fn()];
  function Page() {
    useKeys([
      { key: 'j', label: 'Next line', run: next },
      { key: 'g l', label: 'Go to letters', run: go },
    ]);
    return <input aria-label="field" />;
  }

  test('do what they say, alone or after each other', async () => {
    const { user } = show(<Page />);
    await user.keyboard('j');
    await user.keyboard('gl');
    expect([next.mock.calls.length, go.mock.calls.length]).toEqual([1, 1]);
  });

  test('belong to what is typed into', async () => {
    next.mockClear();
    const { user } = show(<Page />);
    await user.type(screen.getByLabelText('field'), 'j');
    expect(next).not.toHaveBeenCalled();
  });

  test('are listed by ?', async () => {
    const { user } = show(<Page />);
    await user.keyboard('?');
    expect(await screen.findByRole('dialog', { name: 'Keyboard' })).toHaveTextContent('Next line');
  });
});

describe('what one may not do', () => {
  const button = (disabled: boolean) => <Button disabled={disabled}>Redrive</Button>;

  test('is shown disabled, with the permission that is missing', async () => {
    serve({ 'GET /api/v1/about': ABOUT });
    show(<Permitted to="runs:make">{button}</Permitted>);
    expect(screen.getByRole('button', { name: 'Redrive' })).toBeDisabled();
    expect(await screen.findByLabelText('You lack the permission runs:make')).toBeInTheDocument();
  });

  test('depends on the queue', () => {
    serve({ 'GET /api/v1/about': ABOUT });
    const me = somebody(['runs:make'], ['pay*']);
    show(<Permitted to="runs:make" queue="payments">{button}</Permitted>, { me });
    expect(screen.getByRole('button', { name: 'Redrive' })).toBeEnabled();
    show(<Permitted to="runs:make" queue="orders">{button}</Permitted>, { me });
    expect(screen.getByLabelText('You lack the permission runs:make for the queue orders')).toBeInTheDocument();
  });

  test('on a server that only shows is anything that changes something', async () => {
    serve({ 'GET /api/v1/about': { ...ABOUT, read_only: true } });
    show(<Permitted to="runs:make">{button}</Permitted>, { me: somebody(['runs:make']) });
    expect(await screen.findByLabelText('This server only shows')).toBeInTheDocument();
  });
});

test('what is copied is asked for when it is needed', async () => {
  const { user } = show(<CopyButton value={() => 'redrive show 1'} label="Copy command" />);
  await user.click(screen.getByRole('button', { name: 'Copy command' }));
  expect(await screen.findByRole('button', { name: 'Copied' })).toBeInTheDocument();
  expect(await navigator.clipboard.readText()).toBe('redrive show 1');
});
