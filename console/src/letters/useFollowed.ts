import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { useLettersNow } from '@/api/letter-lists';
import { letterKeys } from '@/api/letters';
import type { Letter } from '@/api/types';
import { useLiveEvery } from '@/shared/live';

const EVERY = 5_000;

/** Loads the letter anew when it has changed: its line is looked at, which is small, and not the whole of it. */
export function useFollowed({ id, changed_at: seen, deliveries }: Letter): void {
  const client = useQueryClient();
  const ids = useMemo(() => [id], [id]);
  const { data } = useLettersNow(ids, useLiveEvery(EVERY));
  const line = data.get(id);
  const changed = line !== undefined && (Date.parse(line.changed_at) > Date.parse(seen) || line.deliveries > deliveries);
  useEffect(() => {
    if (changed) void client.invalidateQueries({ queryKey: letterKeys.one(id) });
  }, [changed, client, id]);
}
