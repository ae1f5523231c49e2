import { createContext, use, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useText } from '@/locales/language';
import { KeyHints } from './KeyHints';

export interface KeyBinding {
  /** As `KeyboardEvent.key` has it, or two after each other: `g l`. */
  key: string;
  /** What it does, for the list that `?` shows. */
  label: string;
  run: () => void;
}

export interface BoundKeys {
  section: 'everywhere' | 'page';
  bindings: readonly KeyBinding[];
}

type Register = (keys: BoundKeys) => () => void;
const KeysContext = createContext<Register | null>(null);
const SECOND_WITHIN = 1200;

/** Keys belong to what is being typed into, to open dialogs, and to the browser's own shortcuts first. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const at = event.target instanceof HTMLElement ? event.target : null;
  if (at?.closest('input, textarea, select, [contenteditable="true"], [role="dialog"], [role="menu"]')) return true;
  if (event.key === 'Enter' && at?.closest('a, button, summary, [role="tab"]')) return true;
  return document.querySelector('[role="dialog"]') !== null;
}

export function KeysProvider({ children }: { children: ReactNode }) {
  const all = useRef(new Set<BoundKeys>());
  const [hints, setHints] = useState<readonly BoundKeys[] | null>(null);
  useEffect(() => {
    let first = { key: '', at: 0 };
    const pressed = (event: KeyboardEvent) => {
      if (isTaken(event)) return;
      if (event.key === '?') {
        setHints([...all.current]);
        return;
      }
      const chord = event.timeStamp - first.at < SECOND_WITHIN ? `${first.key} ${event.key}` : '';
      const bindings = [...all.current].flatMap((each) => each.bindings).reverse();
      const found = bindings.find(({ key }) => key === chord) ?? bindings.find(({ key }) => key === event.key);
      first = { key: event.key, at: event.timeStamp };
      if (found === undefined) return;
      event.preventDefault();
      found.run();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
  const register = useMemo<Register>(
    () => (keys) => {
      all.current.add(keys);
      return () => all.current.delete(keys);
    },
    [],
  );
  const { shared } = useText();
  const own: BoundKeys = { section: 'everywhere', bindings: [{ key: '?', label: shared.keys.help, run: () => undefined }] };
  return (
    <KeysContext value={register}>
      {children}
      <KeyHints keys={hints && [...hints, own]} onClose={() => setHints(null)} />
    </KeysContext>
  );
}

/** Keys while the caller is on the page. Later ones win over earlier ones. */
export function useKeys(bindings: readonly KeyBinding[], section: BoundKeys['section'] = 'page'): void {
  const register = use(KeysContext);
  const current = useRef(bindings);
  const written = bindings.map(({ key, label }) => `${key}\n${label}`).join('\n\n');
  useEffect(() => {
    current.current = bindings;
  });
  useEffect(() => {
    const stable = current.current.map(({ key, label }) => ({
      key,
      label,
      run: () => current.current.find((each) => each.key === key)?.run(),
    }));
    return register?.({ section, bindings: stable });
  }, [register, section, written]);
}
