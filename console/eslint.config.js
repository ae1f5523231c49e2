import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

const STYLE_TAGS = 'adds a <style> tag, which the content security policy refuses: use CSS modules';
const MARKUP = 'Messages are hostile: text nodes only.';

const syntax = [
  { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: MARKUP },
  { selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]", message: MARKUP },
  { selector: "JSXAttribute[name.name=/^(visibleFrom|hiddenFrom)$/]", message: `It ${STYLE_TAGS}.` },
  {
    selector: 'JSXAttribute[name.name=/^(m|p)[xytblrse]?$|^(w|h|gap|fz|display|cols)$/] > JSXExpressionContainer > ObjectExpression',
    message: `A responsive style prop ${STYLE_TAGS}.`,
  },
];

export default tseslint.config(
  { ignores: ['node_modules', 'src/api/schema.d.ts', '../src/redrive/console'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}', 'vite.config.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { 'react-hooks': hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      'max-lines': ['error', { max: 250 }],
      'max-lines-per-function': ['error', { max: 90, skipBlankLines: true, skipComments: true }],
      'no-restricted-syntax': ['error', ...syntax],
      'no-restricted-globals': [
        'error',
        { name: 'fetch', message: 'Only src/api asks the server.' },
        { name: 'EventSource', message: 'Only src/api asks the server.' },
        { name: 'XMLHttpRequest', message: 'Only src/api asks the server.' },
        { name: 'localStorage', message: 'Where it is blocked it throws: shared/kept.ts.' },
        { name: 'sessionStorage', message: 'Where it is blocked it throws: shared/kept.ts.' },
      ],
      'no-restricted-properties': [
        'error',
        ...['fetch', 'EventSource', 'XMLHttpRequest', 'localStorage', 'sessionStorage'].flatMap((property) => [
          { object: 'window', property },
          { object: 'globalThis', property },
        ]),
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            { name: '@mantine/core', importNames: ['AppShell', 'Flex', 'Grid', 'SimpleGrid'], message: `It ${STYLE_TAGS}.` },
          ],
        },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/consistent-type-definitions': 'off',
    },
  },
  {
    files: ['src/api/**/*.ts'],
    rules: { 'no-restricted-globals': 'off', 'no-restricted-properties': 'off' },
  },
  { files: ['src/shared/kept.ts'], rules: { 'no-restricted-globals': 'off' } },
  {
    files: ['src/**/*.test.{ts,tsx}', 'src/shared/testing/**'],
    rules: { 'max-lines-per-function': 'off', 'no-restricted-globals': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  { files: ['scripts/**/*.mjs', 'eslint.config.js'], languageOptions: { globals: { console: 'readonly', process: 'readonly', URL: 'readonly' } } },
);
