import { CubeIcon } from '@patternfly/react-icons';
import { useState } from 'react';

import { logoOf, type Package } from './catalog';

/** The logo of a package, else a sign for one that has none. */
export function PackageLogo({ application }: { application: Package }) {
  const [isMissing, setMissing] = useState(false);
  const logo = logoOf(application);
  if (isMissing || !logo) return <CubeIcon className="burano-tile-logo" />;
  return <img className="burano-tile-logo" src={logo} alt="" loading="lazy" onError={() => setMissing(true)} />;
}
