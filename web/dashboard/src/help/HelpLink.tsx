import { OutlinedQuestionCircleIcon } from '@patternfly/react-icons';
import { Link } from '@tanstack/react-router';

import { useText } from '../text';

/** Leads to the document that explains what stands beside. */
export function HelpLink({ page, section }: { page: string; section?: string }) {
  const text = useText();
  return (
    <Link to="/help/$page" params={{ page }} hash={section} aria-label={text.help.about(page)} className="burano-help">
      <OutlinedQuestionCircleIcon />
    </Link>
  );
}
