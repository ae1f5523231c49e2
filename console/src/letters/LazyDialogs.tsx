import { lazy, Suspense, useState, type ComponentProps } from 'react';

const Redrive = lazy(async () => ({ default: (await import('@/runs/RedriveDialog')).RedriveDialog }));
const Edit = lazy(async () => ({ default: (await import('@/runs/EditDialog')).EditDialog }));

/** True from the first time on that it is opened: until then nothing of it is loaded. */
function useWasOpened(opened: boolean): boolean {
  const [was, setWas] = useState(opened);
  if (opened && !was) setWas(true);
  return was || opened;
}

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
