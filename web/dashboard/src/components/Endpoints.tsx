import { ExternalLinkAltIcon } from '@patternfly/react-icons';

import type { ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { endpointsOf } from './components';

/** Where an application answers from outside, as links; nothing where it does not. */
export function Endpoints({ object }: { object: ObjectModel }) {
  const words = useText().components;
  return endpointsOf(object).map((url) => (
    <a key={url} href={url} target="_blank" rel="noopener noreferrer" className="burano-endpoint burano-breaks" aria-label={words.open(url)}>
      {new URL(url).host} <ExternalLinkAltIcon />
    </a>
  ));
}
