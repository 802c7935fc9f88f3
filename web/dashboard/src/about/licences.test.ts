import { expect, test } from 'vitest';

import { packagesOf } from '../../licences';

test('modules are traced to the packages that they are of', () => {
  expect(
    packagesOf([
      '/d/src/main.tsx',
      '/d/node_modules/react/index.js',
      '/d/node_modules/react/jsx-runtime.js?v=1',
      '\0/d/node_modules/@patternfly/react-core/dist/esm/index.js',
      '/d/node_modules/a/node_modules/b/c.js',
    ]),
  ).toEqual(['/d/node_modules/@patternfly/react-core', '/d/node_modules/a/node_modules/b', '/d/node_modules/react']);
});
