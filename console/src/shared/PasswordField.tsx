import { PasswordInput, type PasswordInputProps } from '@mantine/core';
import { useText } from '@/locales/language';

/** A password, with an eye that speaks the language of the page. */
export function PasswordField(props: PasswordInputProps) {
  const { shared } = useText();
  return <PasswordInput visibilityToggleButtonProps={{ 'aria-label': shared.showPassword }} {...props} />;
}
