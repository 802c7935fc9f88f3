import { FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import type { ReactNode } from 'react';

interface Props {
  id: string;
  label: string;
  title?: string;
  description?: string;
  help?: string;
  isRequired?: boolean;
  errors: string[];
  children: ReactNode;
}

/** The ids of an input's descriptions, for its aria-describedby. */
export const describedBy = (id: string): string => `${id}-errors ${id}-description`;

/** A field with its description beside it, below it on narrow pages, and its errors. */
export function FieldRow({ id, label, title, description, help, isRequired, errors, children }: Props) {
  return (
    <div className="burano-field">
      <FormGroup label={label} fieldId={id} isRequired={isRequired}>
        {children}
        <FormHelperText>
          <HelperText id={`${id}-errors`} isLiveRegion>
            {errors.map((message) => (
              <HelperTextItem key={message} variant="error">
                {message}
              </HelperTextItem>
            ))}
            {help && errors.length === 0 && <HelperTextItem>{help}</HelperTextItem>}
          </HelperText>
        </FormHelperText>
      </FormGroup>
      <div id={`${id}-description`} className="burano-field-description burano-breaks">
        {title && <strong>{title} </strong>}
        {description}
      </div>
    </div>
  );
}
