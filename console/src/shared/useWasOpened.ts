import { useState } from 'react';

/** True from the first time on that it is opened: until then nothing of it has to be loaded. */
export function useWasOpened(opened: boolean): boolean {
  const [was, setWas] = useState(opened);
  if (opened && !was) setWas(true);
  return was || opened;
}
