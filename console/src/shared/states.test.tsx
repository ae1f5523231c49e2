import { screen } from '@testing-library/react';
import { describe, expect, test, vi } from 'vitest';
import { ApiProblem } from '@/api/problem';
import { DataState } from './DataState';
import { EmptyState } from './EmptyState';
import { PageHeader } from './PageHeader';
import { expectAccessible, show } from './testing/render';

const NEVER = { data: undefined, error: null, isPending: true, refetch: () => undefined };

describe('a list', () => {
  test('that loads says so', () => {
    show(<DataState query={NEVER}>{() => 'there'}</DataState>);
    expect(screen.getByRole('status', { name: 'Loading' })).toBeInTheDocument();
  });

  test('that is empty says what to do', async () => {
    const empty = <EmptyState title="Nothing here" what="Send something" />;
    const { container } = show(
      <DataState query={{ ...NEVER, data: [] }} isEmpty={(data: string[]) => data.length === 0} empty={empty}>
        {() => 'there'}
      </DataState>,
    );
    expect(screen.getByText('Send something')).toBeInTheDocument();
    expect(screen.queryByText('there')).toBeNull();
    await expectAccessible(container);
  });

  test('that failed says what happened, what to do, and can be tried again', async () => {
    const error = new ApiProblem({ status: 500, detail: 'it broke \u202e', remedy: 'mend it', request_id: 'r-7' });
    const refetch = vi.fn();
    const { user } = show(<DataState query={{ ...NEVER, error, refetch }}>{() => 'there'}</DataState>);
    expect(screen.getByRole('alert')).toHaveTextContent('it broke \\u202e');
    expect(screen.getByRole('alert')).toHaveTextContent('mend it');
    expect(screen.getByRole('alert')).toHaveTextContent('r-7');
    await user.click(screen.getByRole('button', { name: 'Try again' }));
    expect(refetch).toHaveBeenCalled();
  });

  test('that was there stays while the server is away', () => {
    const error = new ApiProblem({ status: 0 });
    show(<DataState query={{ ...NEVER, data: 'there', error }}>{(data) => <p>{data}</p>}</DataState>);
    expect(screen.getByText('there')).toBeInTheDocument();
    expect(screen.getByRole('alert')).toHaveTextContent('The server does not answer');
  });
});

test('a page names the tab', () => {
  show(<PageHeader title="Letters" aside="30" actions={<button>Do</button>} />);
  expect(document.title).toBe('Letters · Redrive');
  expect(screen.getByRole('heading', { level: 1, name: 'Letters' })).toBeInTheDocument();
});
