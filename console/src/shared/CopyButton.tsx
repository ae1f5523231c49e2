import { ActionIcon, Button, Tooltip } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { useText } from '@/locales/language';
import { useToasts } from './toasts';

interface Props {
  /** What is copied; a function is asked when it is needed. */
  value: string | (() => string);
  /** Words beside the icon; without them it is the icon alone. */
  label?: string;
  /** For those who do not see the icon. */
  title?: string;
}

export function CopyButton({ value, label, title }: Props) {
  const { shared } = useText();
  const toast = useToasts();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    const text = typeof value === 'string' ? value : value();
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => toast.problem(shared.copyFailed),
    );
  };
  const Shape = copied ? IconCheck : IconCopy;
  const told = copied ? shared.copied : (title ?? shared.copy);
  if (label !== undefined) {
    return (
      <Button leftSection={<Shape size={14} aria-hidden />} onClick={copy}>
        {copied ? shared.copied : label}
      </Button>
    );
  }
  return (
    <Tooltip label={told}>
      <ActionIcon size="sm" aria-label={told} onClick={copy}>
        <Shape size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}
