import { EditorView } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { codeExtensions, mountEditor, readOnly } from './code-mirror';

interface Props {
  text: string;
  language: 'json' | 'text';
  label: string;
}

export default function CodeMirrorView({ text, language, label }: Props) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (host.current === null) return;
    const named = EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' });
    const view = mountEditor(host.current, text, [...codeExtensions(language), ...readOnly, named]);
    return () => view.destroy();
  }, [text, language, label]);
  return <div ref={host} />;
}
