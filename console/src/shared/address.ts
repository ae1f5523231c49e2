import { useCallback, useMemo } from 'react';
import { useLocation, useNavigate } from 'react-router';

type Values = Record<string, string | null | undefined>;

function written(values: URLSearchParams): string {
  const text = values.toString();
  return text === '' ? '' : `#${text}`;
}

/** A link to a page in a state: `addressOf('/letters', { q: 'queue:orders' })`. */
export function addressOf(path: string, values: Values): string {
  const given = Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return path + written(new URLSearchParams(given));
}

/**
 * The state of a page in its URL: filter, sorting, open tab. It stands behind the `#`, which browsers do not send:
 * a filter may be personal, and URLs are written to logs. `set` leaves what is not named; null takes away.
 */
export function useAddress() {
  const { pathname, hash } = useLocation();
  const navigate = useNavigate();
  const values = useMemo(() => new URLSearchParams(hash.slice(1)), [hash]);
  const get = useCallback((name: string) => values.get(name) ?? '', [values]);
  const set = useCallback(
    (changes: Values, { replace = false }: { replace?: boolean } = {}) => {
      const next = new URLSearchParams(values);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === undefined || value === '') next.delete(name);
        else next.set(name, value);
      }
      void navigate(pathname + written(next), { replace });
    },
    [values, navigate, pathname],
  );
  return { get, set };
}
