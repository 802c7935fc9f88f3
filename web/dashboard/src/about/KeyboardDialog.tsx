import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, Modal, ModalBody, ModalHeader } from '@patternfly/react-core';
import { useId } from 'react';

import { useText } from '../text';

/** The keys and their effects. */
export function KeyboardDialog({ onClose }: { onClose: () => void }) {
  const words = useText().palette;
  const id = useId();
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.keyboard} labelId={`${id}-title`} />
      <ModalBody>
        <DescriptionList isHorizontal>
          {words.keys.map(({ key, what }) => (
            <DescriptionListGroup key={key}>
              <DescriptionListTerm>
                <kbd className="burano-code">{key}</kbd>
              </DescriptionListTerm>
              <DescriptionListDescription>{what}</DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
      </ModalBody>
    </Modal>
  );
}
