import { Button } from '@mantine/core';
import { useState } from 'react';
import { useFormat, useText } from '@/locales/language';
import { Untrusted } from './Untrusted';
import classes from './TextWindow.module.css';

const WINDOW = 32 * 1024;

/** Text of any length, some of it at a time. */
export function TextWindow({ text, size = WINDOW }: { text: string; size?: number }) {
  const { shared } = useText();
  const format = useFormat();
  const [from, setFrom] = useState(0);
  const start = Math.min(from, Math.max(0, text.length - 1));
  const end = Math.min(text.length, start + size);
  if (text === '') return <p className="rd-dim">{shared.json.empty}</p>;
  return (
    <div>
      {text.length > size && (
        <div className={classes.bar}>
          <Button disabled={start === 0} onClick={() => setFrom(Math.max(0, start - size))}>
            {shared.json.earlier}
          </Button>
          <Button disabled={end >= text.length} onClick={() => setFrom(start + size)}>
            {shared.json.later}
          </Button>
          <span className="rd-dim">
            {shared.json.window(format.number(start + 1), format.number(end), format.number(text.length))}
          </span>
        </div>
      )}
      <pre className={classes.text} tabIndex={0}>
        <Untrusted block text={text.slice(start, end)} />
      </pre>
    </div>
  );
}
