import { expect, test } from 'vitest';
import { staticVariables } from './theme';

test('the stylesheet has the variables of the theme', async () => {
  await expect(staticVariables()).toMatchFileSnapshot('./variables.css');
});
