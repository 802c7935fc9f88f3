import { Button, Flex, FlexItem } from '@patternfly/react-core';
import { AngleLeftIcon, AngleRightIcon } from '@patternfly/react-icons';

import { useText } from '../text';
import { back, onward, pageNumber } from './paging';

interface Props {
  /** Markers of the pages up to this one; undefined on the first. */
  trail?: string;
  /** Marker of the next page; undefined on the last. */
  next?: string;
  onTurn: (trail: string | undefined) => void;
}

/** Turns the pages of a list of unknown length. */
export function Pager({ trail, next, onTurn }: Props) {
  const { shell } = useText();
  return (
    <Flex spaceItems={{ default: 'spaceItemsXs' }} flexWrap={{ default: 'nowrap' }}>
      <FlexItem>
        <Button variant="plain" icon={<AngleLeftIcon />} aria-label={shell.before} isDisabled={!trail} onClick={() => trail && onTurn(back(trail))} />
      </FlexItem>
      <FlexItem style={{ whiteSpace: 'nowrap' }}>{shell.page(pageNumber(trail))}</FlexItem>
      <FlexItem>
        <Button variant="plain" icon={<AngleRightIcon />} aria-label={shell.next} isDisabled={!next} onClick={() => next && onTurn(onward(trail, next))} />
      </FlexItem>
    </Flex>
  );
}
