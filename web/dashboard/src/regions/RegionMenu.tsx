import { GlobeIcon } from '@patternfly/react-icons';
import { ToolbarItem } from '@patternfly/react-core';
import { lazy } from 'react';

import { LateMenu } from '../shell/LateMenu';
import { useText } from '../text';
import { nameOfRegion, useRegion } from './regions';

const Regions = lazy(() => import('../shell/Menus').then(({ Regions }) => ({ default: Regions })));

/** The region to work in, where the cloud has more than one. */
export function RegionMenu() {
  const words = useText().shell;
  const { regions, region } = useRegion();
  if (regions.length < 2) return null;
  const name = nameOfRegion(regions, region);
  return (
    <ToolbarItem>
      <LateMenu menu={Regions} label={`${words.chooseRegion}: ${name}`} icon={<GlobeIcon />} shown={<span className="burano-wide-only">{name}</span>} />
    </ToolbarItem>
  );
}
