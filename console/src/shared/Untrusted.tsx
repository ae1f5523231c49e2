import { memo } from 'react';
import { partsOf } from './untrusted';
import classes from './Untrusted.module.css';

interface Props {
  text: string;
  /** Longer text is cut there. */
  most?: number;
  /** In the font of ids and payloads. */
  mono?: boolean;
  /** Line breaks stay as they are. */
  block?: boolean;
}

const MOST_ESCAPES = 500;

/** Text of a message, or made of one: never markup, and nothing in it can hide or turn what stands around it. */
export const Untrusted = memo(function Untrusted({ text, most = 100_000, mono = false, block = false }: Props) {
  const shown = text.length > most ? text.slice(0, most) : text;
  const names = [classes.text, mono ? 'rd-mono' : '', block ? classes.block : ''].filter(Boolean).join(' ');
  return (
    <bdi className={names}>
      {partsOf(shown, MOST_ESCAPES).map((part, at) =>
        part.hidden ? (
          <span key={at} className={classes.escape}>
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
      {shown.length < text.length && <span className={classes.cut}>…</span>}
    </bdi>
  );
});
