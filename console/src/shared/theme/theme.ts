import {
  convertCssVariables,
  createTheme,
  defaultCssVariablesResolver,
  mergeMantineTheme,
  DEFAULT_THEME,
  type MantineColorsTuple,
} from '@mantine/core';

const teal: MantineColorsTuple = [
  '#effaf8', '#d6f1ec', '#addfd7', '#7fccc0', '#4fb5a7', '#279d8e', '#118477', '#0b6b61', '#08564e', '#06423c',
];
const gray: MantineColorsTuple = [
  '#f7f8f8', '#eff1f1', '#e3e6e6', '#d3d7d8', '#b6bcbe', '#91999c', '#6a7376', '#4c5457', '#33393c', '#1d2123',
];
const dark: MantineColorsTuple = [
  '#d7dcde', '#aab2b5', '#8b9498', '#5f686c', '#3d4549', '#2c3235', '#22272a', '#191d1f', '#131618', '#0d0f10',
];
const red: MantineColorsTuple = [
  '#fdf0ef', '#fbdcd9', '#f5b8b3', '#ee938b', '#e6736a', '#e05a50', '#c93a30', '#b3261e', '#931d17', '#741510',
];

const UNLOCKED = { lockScroll: false, transitionProps: { duration: 120, transition: 'fade' as const } };

/** The look: calm, dense, one accent. What pages need beyond it are the variables of theme.css. */
export const theme = createTheme({
  colors: { teal, gray, dark, red },
  primaryColor: 'teal',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  black: '#1d2123',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.5', lg: '1.5', xl: '1.4' },
  spacing: { xs: '0.5rem', sm: '0.75rem', md: '1rem', lg: '1.5rem', xl: '2rem' },
  defaultRadius: 'sm',
  radius: { xs: '3px', sm: '5px', md: '8px', lg: '12px', xl: '20px' },
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '1.25rem' }, h2: { fontSize: '1rem' }, h3: { fontSize: '0.875rem' } },
  },
  cursorType: 'pointer',
  components: {
    Button: { defaultProps: { size: 'xs', variant: 'default' } },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray' } },
    TextInput: { defaultProps: { size: 'sm' } },
    PasswordInput: { defaultProps: { size: 'sm' } },
    Select: { defaultProps: { size: 'sm' } },
    Table: { defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm', fz: 'sm' } },
    Tooltip: { defaultProps: { openDelay: 250, fz: 'xs', withArrow: true, multiline: true } },
    // What locks scrolling writes a style tag, which the content security policy refuses: theme.css does it.
    Modal: { defaultProps: UNLOCKED },
    ModalRoot: { defaultProps: { lockScroll: false } },
    Drawer: { defaultProps: { lockScroll: false } },
    DrawerRoot: { defaultProps: { lockScroll: false } },
    // The page has one banner, which is the top bar.
    ModalHeader: { defaultProps: { role: 'presentation' } },
    DrawerHeader: { defaultProps: { role: 'presentation' } },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 80 } } },
    Text: { defaultProps: { size: 'sm' } },
  },
});

/** Mantine's variables as a stylesheet, for the page may not write style tags: variables.css has it. */
export function staticVariables(): string {
  const made = defaultCssVariablesResolver(mergeMantineTheme(DEFAULT_THEME, theme));
  return `/* Made of theme.ts: \`npx vitest run theme --update\` writes it anew. */\n${convertCssVariables(made, ':root')}\n`;
}
