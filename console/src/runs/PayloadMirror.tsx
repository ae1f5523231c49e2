import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { unifiedMergeView } from '@codemirror/merge';
import { Compartment, EditorState, Text, type Extension } from '@codemirror/state';
import { EditorView, keymap } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { codeExtensions, mountEditor } from '@/shared/code-mirror';
import classes from './dialogs.module.css';

interface Props {
  /** What stands in it at first; it keeps what is typed by itself. */
  text: string;
  /** What it is compared with; null: with nothing. */
  original: string | null;
  language: 'json' | 'text';
  label: string;
  onChange: (text: string) => void;
}

const look = EditorView.theme({
  '&.cm-focused': { outline: 'none !important' },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--rd-status-resolved-soft) !important' },
  '.cm-deletedChunk, .cm-deletedLine': { backgroundColor: 'var(--rd-bad-soft) !important' },
  '.cm-changedText': { background: 'none !important', textDecoration: 'underline 2px', textUnderlineOffset: '3px' },
  '.cm-deletedText, .cm-deletedLine del': { background: 'none !important', textDecoration: 'line-through' },
  '.cm-changedLineGutter': { backgroundColor: 'var(--rd-status-resolved) !important' },
  '.cm-deletedLineGutter': { backgroundColor: 'var(--rd-bad) !important' },
});

/** A carriage return is a character like others here: whoever saves must get back what was there. */
const linesOf = (text: string) => Text.of(text.split('\n'));

const against = (original: string): Extension =>
  unifiedMergeView({ original: linesOf(original), mergeControls: false, diffConfig: { scanLimit: 1000, timeout: 300 } });

export default function PayloadMirror({ text, original, language, label, onChange }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const mirror = useRef<EditorView>(null);
  const compared = useRef(new Compartment());
  const first = useRef({ text, language, label, onChange });
  useEffect(() => {
    first.current.onChange = onChange;
  }, [onChange]);
  useEffect(() => {
    if (host.current === null) return;
    const given = first.current;
    const view = mountEditor(host.current, given.text, [
      EditorState.lineSeparator.of('\n'),
      ...codeExtensions(given.language),
      look,
      history(),
      keymap.of([...defaultKeymap, ...historyKeymap]),
      EditorView.contentAttributes.of({ 'aria-label': given.label, spellcheck: 'false' }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) first.current.onChange(update.state.doc.toString());
      }),
      compared.current.of([]),
    ]);
    mirror.current = view;
    return () => view.destroy();
  }, []);
  // Whoever types meanwhile goes on typing: only what it is compared with is another.
  useEffect(() => {
    mirror.current?.dispatch({ effects: compared.current.reconfigure([]) });
    if (original !== null) mirror.current?.dispatch({ effects: compared.current.reconfigure(against(original)) });
  }, [original]);
  return <div ref={host} className={classes.editor} data-testid="payload-editor" />;
}
