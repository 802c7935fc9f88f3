import { expect, test } from 'vitest';

import { markCommand, unmarkCommand } from './images';

test('the command to mark an image survives a shell', () => {
  expect(markCommand('debian-12', 'linux', "Bob's Debian")).toBe(
    `openstack image set --property 'murano_image_info={"type":"linux","title":"Bob'\\''s Debian"}' 'debian-12'`,
  );
  expect(unmarkCommand('a b')).toBe("openstack image unset --property murano_image_info 'a b'");
});
