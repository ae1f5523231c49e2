import { useText } from '@/locales/language';
import { useToasts } from '@/shared/toasts';

/** Copies a text, and tells whether the browser let it. */
export function useCopy(): (text: string) => void {
  const { shared } = useText();
  const toast = useToasts();
  return (text) => {
    navigator.clipboard.writeText(text).then(
      () => toast.done(shared.copied),
      () => toast.problem(shared.copyFailed),
    );
  };
}
