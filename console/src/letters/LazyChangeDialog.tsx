import { lazy, Suspense, type ComponentProps } from 'react';
import { useWasOpened } from '@/shared/useWasOpened';

const Change = lazy(async () => ({ default: (await import('./ChangeDialog')).ChangeDialog }));

export function LazyChangeDialog(props: ComponentProps<typeof Change>) {
  return useWasOpened(props.name !== null) ? (
    <Suspense>
      <Change {...props} />
    </Suspense>
  ) : null;
}
