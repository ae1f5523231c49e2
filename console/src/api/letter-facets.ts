import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { told } from './client';
import { letterKeys } from './letters';
import type { components } from './schema';

export const FACETS = ['status', 'queue', 'type', 'handler'] as const;
export type FacetName = (typeof FACETS)[number];
export type Facets = components['schemas']['Facets'];

/** What the letters that match are, by field. A filter that cannot be read is explained by the list. */
export function useFacets(filter: string, enabled = true) {
  return useQuery({
    queryKey: [...letterKeys.all, 'facets', filter],
    queryFn: ({ signal }): Promise<Facets> =>
      told('post', '/api/v1/search/facets', { body: { selection: filter === '' ? {} : { q: filter } }, signal }),
    placeholderData: keepPreviousData,
    enabled,
  });
}
