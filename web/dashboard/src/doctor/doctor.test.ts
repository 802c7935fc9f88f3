import { expect, test } from 'vitest';

import { worstFirst, type Line } from './doctor';

test('what is bad comes first, and else the order stays', () => {
  const line = (check: string, state: Line['state']): Line => ({ check, state, text: '' });
  const lines = [line('clock', 'ok'), line('Heat', 'failed'), line('roles', 'warning'), line('TLS', 'ok'), line('Nova', 'failed')];
  expect(worstFirst(lines).map((one) => one.check)).toEqual(['Heat', 'Nova', 'roles', 'clock', 'TLS']);
});
