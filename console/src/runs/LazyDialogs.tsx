import { lazy, Suspense, type ComponentProps } from 'react';
import { useWasOpened } from '@/shared/useWasOpened';

const Redrive = lazy(async () => ({ default: (await import('./RedriveDialog')).RedriveDialog }));
const Edit = lazy(async () => ({ default: (await import('./EditDialog')).EditDialog }));

export function LazyRedriveDialog(props: ComponentProps<typeof Redrive>) {
  return useWasOpened(props.opened) ? (
    <Suspense>
      <Redrive {...props} />
    </Suspense>
  ) : null;
}

export function LazyEditDialog(props: ComponentProps<typeof Edit>) {
  return useWasOpened(props.opened) ? (
    <Suspense>
      <Edit {...props} />
    </Suspense>
  ) : null;
}
