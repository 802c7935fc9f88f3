import { expect, test } from 'vitest';

import { markCommand, showBytes, unmarkCommand } from './images';

test('the command to mark an image survives a shell', () => {
  expect(markCommand('debian-12', 'linux', "Bob's Debian")).toBe(
    `openstack image set --property 'murano_image_info={"type":"linux","title":"Bob'\\''s Debian"}' 'debian-12'`,
  );
  expect(unmarkCommand('a b')).toBe("openstack image unset --property murano_image_info 'a b'");
});

test('sizes are written in their unit', () => {
  expect([showBytes(0, 'en'), showBytes(1023, 'en'), showBytes(1536, 'de'), showBytes(5 * 1024 ** 3, 'en')]).toEqual(['0 B', '1,023 B', '1,5 KiB', '5 GiB']);
});
