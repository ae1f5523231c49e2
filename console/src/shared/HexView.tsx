import { Button } from '@mantine/core';
import { useState } from 'react';
import { useFormat, useText } from '@/locales/language';
import classes from './TextWindow.module.css';

const LINE = 16;
const WINDOW = 256 * LINE;

function lineOf(bytes: Uint8Array, at: number): string {
  const line = bytes.subarray(at, at + LINE);
  const hex = Array.from(line, (byte) => byte.toString(16).padStart(2, '0'));
  const halves = `${hex.slice(0, 8).join(' ').padEnd(23)}  ${hex.slice(8).join(' ').padEnd(23)}`;
  const plain = Array.from(line, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
  return `${at.toString(16).padStart(8, '0')}  ${halves}  ${plain}`;
}

/** Bytes as hex and ASCII, some of them at a time. */
export function HexView({ bytes }: { bytes: Uint8Array }) {
  const { shared } = useText();
  const format = useFormat();
  const [from, setFrom] = useState(0);
  const start = from < bytes.length ? from : 0;
  const end = Math.min(bytes.length, start + WINDOW);
  const lines: string[] = [];
  for (let at = start; at < end; at += LINE) lines.push(lineOf(bytes, at));
  if (bytes.length === 0) return <p className="rd-dim">{shared.json.empty}</p>;
  return (
    <div>
      {bytes.length > WINDOW && (
        <div className={classes.bar}>
          <Button disabled={start === 0} onClick={() => setFrom(Math.max(0, start - WINDOW))}>
            {shared.json.earlier}
          </Button>
          <Button disabled={end >= bytes.length} onClick={() => setFrom(start + WINDOW)}>
            {shared.json.later}
          </Button>
          <span className="rd-dim">
            {shared.json.bytesWindow(format.number(start), format.number(end - 1), format.number(bytes.length))}
          </span>
        </div>
      )}
      <pre className={classes.hex} tabIndex={0}>
        {lines.join('\n')}
      </pre>
    </div>
  );
}
