import { Modal, ModalBody, ModalHeader } from '@patternfly/react-core';

import { useFirstText } from '../text';
import type { SignedIn } from './session';
import { SignInForm } from './SignInForm';

/** Asks for the password again, over the page as it is. */
export function SignInAgain(props: { former: SignedIn; onSignedIn: (session: SignedIn) => void }) {
  const words = useFirstText().session;
  return (
    <Modal isOpen variant="small" aria-labelledby="again-title">
      <ModalHeader title={words.again} labelId="again-title" description={words.againWhat} />
      <ModalBody>
        <SignInForm {...props} />
      </ModalBody>
    </Modal>
  );
}
