import { Button, Checkbox, InputGroup, InputGroupItem, TextArea, TextInput } from '@patternfly/react-core';
import { EyeIcon, EyeSlashIcon } from '@patternfly/react-icons';
import { useState } from 'react';

import { useText } from '../text';
import { describedBy } from './FieldRow';
import type { InputProps } from './input';
import { numberOf, textOf } from './values';

const state = (isWrong: boolean) => (isWrong ? 'error' : 'default');

export function LineInput({ id, field, value, isWrong, onChange, onLeave }: InputProps) {
  const isNumber = field.type === 'integer';
  return (
    <TextInput
      id={id}
      value={textOf(value)}
      placeholder={field.placeholder}
      inputMode={isNumber ? 'numeric' : undefined}
      isRequired={field.required}
      validated={state(isWrong)}
      aria-describedby={describedBy(id)}
      onChange={(_event, text) => onChange(isNumber ? numberOf(text) : text)}
      onBlur={onLeave}
      autoComplete="off"
    />
  );
}

export function TextAreaInput({ id, field, value, isWrong, onChange, onLeave }: InputProps) {
  const isJSON = field.type === 'json';
  return (
    <TextArea
      id={id}
      className={isJSON ? 'burano-mono' : undefined}
      value={isJSON && typeof value !== 'string' && value !== undefined && value !== null ? JSON.stringify(value, null, 2) : textOf(value)}
      placeholder={field.placeholder}
      isRequired={field.required}
      validated={state(isWrong)}
      aria-describedby={describedBy(id)}
      aria-label={field.label || field.name}
      resizeOrientation="vertical"
      rows={isJSON ? 8 : 4}
      onChange={(_event, text) => onChange(text)}
      onBlur={onLeave}
    />
  );
}

export function TickInput({ id, field, value, onChange, onLeave }: InputProps) {
  return (
    <Checkbox
      id={id}
      label={field.label}
      isChecked={value === true}
      aria-describedby={describedBy(id)}
      onChange={(_event, checked) => onChange(checked)}
      onBlur={onLeave}
    />
  );
}

/** A text that is not shown while it is typed, unless one wants to see it. */
export function SecretInput({ id, field, value, isWrong, onChange, onLeave, label }: InputProps & { label?: string }) {
  const words = useText().wizard;
  const [shown, setShown] = useState(false);
  return (
    <InputGroup>
      <InputGroupItem isFill>
        <TextInput
          id={id}
          type={shown ? 'text' : 'password'}
          value={textOf(value)}
          placeholder={field.placeholder}
          isRequired={field.required}
          validated={state(isWrong)}
          aria-label={label}
          aria-describedby={describedBy(id)}
          onChange={(_event, text) => onChange(text)}
          onBlur={onLeave}
          autoComplete="new-password"
        />
      </InputGroupItem>
      <InputGroupItem>
        <Button
          variant="control"
          aria-label={shown ? words.hideSecret : words.showSecret}
          icon={shown ? <EyeSlashIcon /> : <EyeIcon />}
          onClick={() => setShown(!shown)}
        />
      </InputGroupItem>
    </InputGroup>
  );
}
