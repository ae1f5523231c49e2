import { Button, Skeleton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import { useText } from '@/locales/language';
import { Kind, meaning, type JsonIndex } from './json-index';
import { openedAtFirst, PAGE, rowsOf, type Row } from './json-rows';
import { TextWindow } from './TextWindow';
import { Untrusted } from './Untrusted';
import { useJsonIndex } from './useJsonIndex';
import classes from './JsonTree.module.css';

const ROWS = 400;
const LONGEST_STRING = 2000;
const MOST_INDENT = 14;
const INDENT = 14;
const LEAST_VALUE = 180;

const indentOf = (depth: number) => Math.min(depth, MOST_INDENT) * INDENT + 2;

/** A JSON text as a tree: numbers exactly as they are written, children as they are opened. Else the text itself. */
export function JsonTree({ text }: { text: string }) {
  const { shared } = useText();
  const read = useJsonIndex(text);
  if (read.state === 'reading') return <Skeleton height={120} aria-label={shared.loading} />;
  if (read.state === 'ready') return <Tree index={read.index} />;
  return (
    <>
      <p className="rd-dim">{shared.json.notJson}</p>
      <TextWindow text={text} />
    </>
  );
}

function Tree({ index }: { index: JsonIndex }) {
  const { shared } = useText();
  const [held, setHeld] = useState(() => ({ index, shown: openedAtFirst(index), first: 0 }));
  if (held.index !== index) setHeld({ index, shown: openedAtFirst(index), first: 0 });
  const { shown, first } = held;
  const setFirst = (next: number) => setHeld({ ...held, first: next });
  const { rows, more } = rowsOf(index, { shown }, first, ROWS);
  const deepest = rows.reduce((most, row) => Math.max(most, row.depth), 0);
  const toggle = (row: Row) => {
    const next = new Map(shown);
    if (row.hidden > 0) next.set(row.node, (next.get(row.node) ?? 0) + PAGE);
    else if (row.open) next.delete(row.node);
    else next.set(row.node, Math.min(PAGE, index.children(row.node)));
    setHeld({ ...held, shown: next });
  };
  return (
    <div className={classes.tree}>
      {first > 0 && <Button onClick={() => setFirst(Math.max(0, first - ROWS / 2))}>{shared.json.earlier}</Button>}
      <ul role="tree" className={classes.rows} aria-label={shared.json.tree} style={{ minWidth: indentOf(deepest) + LEAST_VALUE }}>
        {rows.map((row) => (
          <TreeRow key={`${row.node}-${row.hidden}`} index={index} row={row} onToggle={() => toggle(row)} />
        ))}
      </ul>
      {more && <Button onClick={() => setFirst(first + ROWS / 2)}>{shared.json.later}</Button>}
    </div>
  );
}

interface RowProps {
  index: JsonIndex;
  row: Row;
  onToggle: () => void;
}

function TreeRow({ index, row, onToggle }: RowProps) {
  const { shared } = useText();
  const indent = { paddingInlineStart: indentOf(row.depth) };
  if (row.hidden > 0) {
    return (
      <li role="treeitem" aria-level={row.depth + 1} aria-selected={false} className={classes.row} style={indent}>
        <button type="button" className={classes.more} onClick={onToggle}>
          {shared.json.more(Math.min(row.hidden, PAGE))}
        </button>
      </li>
    );
  }
  const kind = index.kind(row.node);
  const count = index.children(row.node);
  const key = index.keyOf(row.node);
  const Shape = row.open ? IconChevronDown : IconChevronRight;
  const foldable = count > 0;
  return (
    <li
      role="treeitem"
      aria-level={row.depth + 1}
      aria-selected={false}
      aria-expanded={foldable ? row.open : undefined}
      className={classes.row}
      style={indent}
    >
      {foldable ? (
        <button type="button" className={classes.fold} aria-label={row.open ? shared.json.collapse : shared.json.expand} onClick={onToggle}>
          <Shape size={14} aria-hidden />
        </button>
      ) : (
        <span className={classes.fold} />
      )}
      {row.depth > MOST_INDENT && <span className={classes.depth}>{row.depth}</span>}
      {key !== null && (
        <span className={classes.key}>
          <Untrusted mono text={key.length > LONGEST_STRING ? key : meaning(key)} most={300} />:
        </span>
      )}
      {row.place !== null && <span className={classes.place}>{row.place}</span>}
      {kind === Kind.object || kind === Kind.array ? (
        <span className={classes.count}>
          {kind === Kind.object ? '{' : '['}
          {count > 0 && ` ${kind === Kind.object ? shared.json.keys(count) : shared.json.items(count)} `}
          {kind === Kind.object ? '}' : ']'}
        </span>
      ) : (
        <Scalar index={index} node={row.node} kind={kind} />
      )}
    </li>
  );
}

function Scalar({ index, node, kind }: { index: JsonIndex; node: number; kind: Kind }) {
  const [whole, setWhole] = useState(false);
  const from = index.start(node);
  const length = index.end(node) - from;
  if (kind !== Kind.string) {
    const name = kind === Kind.number ? classes.number : classes.word;
    return (
      <span className={name}>
        <Untrusted mono text={index.text.slice(from, from + Math.min(length, 5000))} />
      </span>
    );
  }
  const long = length > LONGEST_STRING;
  if (long && whole) return <TextWindow text={meaning(index.text.slice(from, from + length))} />;
  const written = long ? `${index.text.slice(from, from + LONGEST_STRING - 200).replace(/\\[^"]{0,5}$/, '')}"` : index.text.slice(from, from + length);
  return (
    <span className={classes.string}>
      <Untrusted mono text={`"${meaning(written)}"`} />
      {long && (
        <button type="button" className={classes.more} onClick={() => setWhole(true)}>
          … {length}
        </button>
      )}
    </span>
  );
}
