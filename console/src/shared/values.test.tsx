import { screen } from '@testing-library/react';
import { describe, expect, test } from 'vitest';
import { formatsOf } from '@/locales/format';
import { ptBR } from '@/locales/pt-BR';
import { Count } from './Count';
import { Duration } from './Duration';
import { exactly, Instant } from './Instant';
import { Sparkline } from './Sparkline';
import { StatusBadge } from './StatusBadge';
import { show } from './testing/render';

describe('a moment', () => {
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

  test('is how long ago at a glance, and exact on hover', () => {
    const at = ago(4 * 60 + 20);
    show(<Instant at={at} />);
    const shown = screen.getByText('4 minutes ago');
    expect(shown).toHaveAttribute('title', exactly(new Date(at)));
    expect(shown.title).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d) \(.+\)$/);
  });

  test('is told in the language of the viewer', () => {
    show(<Instant at={ago(7260)} />, { language: 'pt-BR', messages: ptBR });
    expect(screen.getByText('há 2 horas')).toBeInTheDocument();
  });

  test('that is none shows nothing', () => {
    expect(show(<Instant at="never" />).container.querySelector('time')).toBeNull();
  });
});

test.each([
  [0.25, '250ms'],
  [3.46, '3.5s'],
  [75, '1m 15s'],
  [7500, '2h 5m'],
  [90000, '1d 1h'],
])('%d seconds are %s', (seconds, told) => {
  show(<Duration seconds={seconds} />);
  expect(screen.getByText(told)).toBeInTheDocument();
});

test('a count is exact, or says that it is more', () => {
  show(<Count of={12345} />);
  expect(screen.getByText('12,345')).toBeInTheDocument();
  show(<Count of={{ number: 10000, exact: false }} />);
  expect(screen.getByText('more than 10,000')).toBeInTheDocument();
  show(<Count of={1234567} compact />);
  expect(screen.getByText('1.2M')).toHaveAttribute('title', '1,234,567');
});

test('integers beyond 2^53 are written exactly', () => {
  expect(formatsOf('en').number(12345678901234567890n)).toBe('12,345,678,901,234,567,890');
});

test('a status has its word, and one that is unknown is shown as it is', () => {
  show(<StatusBadge status="QUARANTINED" />);
  expect(screen.getByText('Quarantined')).toBeInTheDocument();
  show(<StatusBadge status={'NEWER' as 'PENDING'} />);
  expect(screen.getByText('NEWER')).toBeInTheDocument();
});

test('a sparkline tells its numbers to those who do not see it', () => {
  show(<Sparkline values={[0, 2, 5]} label="Arrivals" />);
  expect(screen.getByRole('img', { name: 'Arrivals. Trend: 0, 2, 5' })).toBeInTheDocument();
});
