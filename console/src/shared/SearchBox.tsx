import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useState, type Ref } from 'react';

interface Props {
  /** What is looked for now, as the address has it. */
  value: string;
  label: string;
  /** Asked when somebody pauses. While they type on, the address is to be replaced, so that back leads to before. */
  onSearch: (text: string, replace: boolean) => void;
  inputRef?: Ref<HTMLInputElement>;
  className?: string | undefined;
}

const PAUSE = 300;

/** Text to look for; it follows the address when that was changed elsewhere. */
export function SearchBox({ value, label, onSearch, inputRef, className }: Props) {
  const [typed, setTyped] = useState(value);
  const [seen, setSeen] = useState(value);
  const [asked, setAsked] = useState(value);
  const [changes, setChanges] = useState(0);
  if (value !== seen) {
    setSeen(value);
    if (value !== asked) {
      setAsked(value);
      setTyped(value);
      setChanges(changes + 1);
    }
  }
  const ask = useDebouncedCallback((next: string) => {
    setAsked(next.trim());
    onSearch(next.trim(), value !== '');
  }, PAUSE);
  // What was typed before the address was changed elsewhere is not what is looked for now.
  useEffect(() => () => ask.cancel(), [changes, ask]);
  return (
    <TextInput
      ref={inputRef}
      className={className ?? ''}
      leftSection={<IconSearch size={15} aria-hidden />}
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        ask(event.currentTarget.value);
      }}
      // Whoever goes to something else wants that to come after what they typed: clearing, say.
      onBlur={() => ask.flush()}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur();
      }}
    />
  );
}
