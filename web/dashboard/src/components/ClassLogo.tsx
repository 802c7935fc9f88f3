import { CubeIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { logoOf } from '../catalog/catalog';
import { packageOfClassQuery } from './components';

/** The logo of the package that a class is from. */
export function ClassLogo({ className }: { className: string }) {
  const found = useQuery(packageOfClassQuery(className));
  const [broken, setBroken] = useState(false);
  const logo = found.data ? logoOf(found.data) : '';
  if (!logo || broken) return <CubeIcon className="burano-class-logo" aria-hidden />;
  return <img className="burano-class-logo" src={logo} alt="" loading="lazy" onError={() => setBroken(true)} />;
}
