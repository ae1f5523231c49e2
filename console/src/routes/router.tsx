import { createBrowserRouter, type RouteObject } from 'react-router';
import { basePath } from '@/api/page';
import { NotFoundPage } from './NotFoundPage';
import { PageFailed } from './PageFailed';
import { Root } from './Root';

/** Every page is a chunk of its own, loaded when somebody goes there. */
export const pages: RouteObject[] = [
  { index: true, lazy: async () => ({ Component: (await import('@/overview/OverviewPage')).OverviewPage }) },
  { path: 'alerts', lazy: async () => ({ Component: (await import('@/alerts/AlertsPage')).AlertsPage }) },
  { path: 'alerts/:id', lazy: async () => ({ Component: (await import('@/alerts/AlertPage')).AlertPage }) },
  { path: 'groups', lazy: async () => ({ Component: (await import('@/groups/GroupsPage')).GroupsPage }) },
  { path: 'groups/:id', lazy: async () => ({ Component: (await import('@/groups/GroupPage')).GroupPage }) },
  { path: 'letters', lazy: async () => ({ Component: (await import('@/letters/LettersPage')).LettersPage }) },
  { path: 'letters/:id', lazy: async () => ({ Component: (await import('@/letters/LetterPage')).LetterPage }) },
  { path: 'runs', lazy: async () => ({ Component: (await import('@/runs/RunsPage')).RunsPage }) },
  { path: 'runs/:id', lazy: async () => ({ Component: (await import('@/runs/RunPage')).RunPage }) },
  { path: 'queues', lazy: async () => ({ Component: (await import('@/queues/QueuesPage')).QueuesPage }) },
  { path: 'audit', lazy: async () => ({ Component: (await import('@/audit/AuditPage')).AuditPage }) },
  { path: 'doctor', lazy: async () => ({ Component: (await import('@/doctor/DoctorPage')).DoctorPage }) },
  { path: 'settings', lazy: async () => ({ Component: (await import('@/settings/SettingsPage')).SettingsPage }) },
  { path: 'sign-in', lazy: async () => ({ Component: (await import('./SignedIn')).SignedIn }) },
  { path: '*', Component: NotFoundPage },
];

export function createRouter() {
  return createBrowserRouter(
    [
      {
        path: '/',
        Component: Root,
        ErrorBoundary: PageFailed,
        HydrateFallback: () => null,
        children: [{ ErrorBoundary: PageFailed, children: pages }],
      },
    ],
    { basename: basePath || '/' },
  );
}
