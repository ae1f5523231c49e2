import { CloseButton } from '@mantine/core';
import { createContext, use, useCallback, useMemo, useRef, useState, type ReactNode } from 'react';
import { problemFrom } from '@/api/problem';
import { useText } from '@/locales/language';
import { Untrusted } from './Untrusted';
import classes from './toasts.module.css';

interface Toast {
  id: number;
  tone: 'done' | 'problem';
  text: string;
  action: ReactNode;
}

interface Toasts {
  /** Something was done; `action` is how to undo it or where to see it. */
  done: (text: string, action?: ReactNode) => void;
  /** Something went wrong: a text, or what was thrown. */
  problem: (problem: unknown) => void;
}

const ToastContext = createContext<Toasts | null>(null);
const STAYS = { done: 6_000, problem: 12_000, withAction: 20_000 };
const MOST = 4;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<Toast[]>([]);
  const next = useRef(0);
  const { shell } = useText();
  const dismiss = useCallback((id: number) => setShown((all) => all.filter((each) => each.id !== id)), []);
  const show = useCallback(
    (tone: Toast['tone'], text: string, action: ReactNode = null) => {
      const id = next.current++;
      setShown((all) => [...all.slice(1 - MOST), { id, tone, text, action }]);
      setTimeout(() => dismiss(id), action === null ? STAYS[tone] : STAYS.withAction);
    },
    [dismiss],
  );
  const toasts = useMemo<Toasts>(
    () => ({
      done: (text, action) => show('done', text, action),
      problem: (problem) => {
        const { detail, remedy } = typeof problem === 'string' ? { detail: problem, remedy: '' } : problemFrom(problem);
        show('problem', remedy === '' ? detail : `${detail}: ${remedy}`);
      },
    }),
    [show],
  );
  return (
    <ToastContext value={toasts}>
      {children}
      <div className={classes.stack} role="log" aria-live="polite">
        {shown.map(({ id, tone, text, action }) => (
          <div key={id} className={`${classes.toast ?? ''} ${classes[tone] ?? ''}`}>
            <div className={classes.text}>
              <Untrusted text={text} most={500} />
            </div>
            {action}
            <CloseButton size="sm" aria-label={shell.toast.close} onClick={() => dismiss(id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}

export function useToasts(): Toasts {
  const found = use(ToastContext);
  if (found === null) throw new Error('no ToastProvider around');
  return found;
}
