import { useEffect, useState } from 'react';
import { JsonIndex, NotJson } from './json-index';

export type Read = { state: 'reading' } | { state: 'ready'; index: JsonIndex } | { state: 'not-json'; at: number };

const AT_ONCE = 256 * 1024;
const SLICE = 256 * 1024;

function readAtOnce(text: string): Read {
  if (text.length > AT_ONCE) return { state: 'reading' };
  const index = new JsonIndex(text);
  return slice(index, Infinity) ?? { state: 'ready', index };
}

function slice(index: JsonIndex, characters: number): Read | null {
  try {
    return index.step(characters) ? { state: 'ready', index } : null;
  } catch (error) {
    return { state: 'not-json', at: error instanceof NotJson ? error.at : 0 };
  }
}

/** Small texts at once; big ones in slices, so that the page stays awake. */
export function useJsonIndex(text: string): Read {
  const [held, setHeld] = useState(() => ({ text, read: readAtOnce(text) }));
  if (held.text !== text) setHeld({ text, read: readAtOnce(text) });
  const reading = held.read.state === 'reading';
  useEffect(() => {
    if (!reading) return;
    const index = new JsonIndex(text);
    let timer: ReturnType<typeof setTimeout>;
    const go = () => {
      const read = slice(index, SLICE);
      if (read === null) timer = setTimeout(go);
      else setHeld({ text, read });
    };
    timer = setTimeout(go);
    return () => clearTimeout(timer);
  }, [text, reading]);
  return held.read;
}
