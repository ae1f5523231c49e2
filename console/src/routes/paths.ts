import { addressOf } from '@/shared/address';

/** Where pages are. Ids are encoded here, so nobody else has to. */
export const paths = {
  overview: '/',
  alerts: '/alerts',
  alert: (id: string) => `/alerts/${encodeURIComponent(id)}`,
  groups: '/groups',
  group: (id: string) => `/groups/${encodeURIComponent(id)}`,
  letters: '/letters',
  lettersBy: (filter: string) => addressOf('/letters', { q: filter }),
  letter: (id: string) => `/letters/${encodeURIComponent(id)}`,
  runs: '/runs',
  run: (id: string) => `/runs/${encodeURIComponent(id)}`,
  queues: '/queues',
  audit: '/audit',
  doctor: '/doctor',
  settings: '/settings',
};
