import { MantineProvider } from '@mantine/core';
import { QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import type { ComponentProps } from 'react';
import { RouterProvider } from 'react-router';
import { LanguageProvider } from '@/locales/language';
import type { Language, Messages } from '@/locales/messages';
import { theme } from '@/shared/theme/theme';
import { ToastProvider } from '@/shared/toasts';

interface Props {
  router: ComponentProps<typeof RouterProvider>['router'];
  queries: QueryClient;
  language: Language;
  messages: Messages;
}

/** Everything around the pages. Mantine writes no style tags: its variables are in variables.css. */
export function Console({ router, queries, language, messages }: Props) {
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <LanguageProvider language={language} messages={messages}>
        <QueryClientProvider client={queries}>
          <ToastProvider>
            <RouterProvider router={router} />
          </ToastProvider>
        </QueryClientProvider>
      </LanguageProvider>
    </MantineProvider>
  );
}
