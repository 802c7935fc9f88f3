import { FormSelect, FormSelectOption, HelperText, HelperTextItem } from '@patternfly/react-core';
import { useEffect } from 'react';

import { useText } from '../text';
import { describedBy } from './FieldRow';
import type { InputProps } from './input';
import { isEmpty, onlyChoice, textOf } from './values';

export interface Option {
  /** The field's value. */
  value: unknown;
  label: string;
  isDisabled?: boolean;
}

const keyOf = (value: unknown): string => (isEmpty(value) ? '' : JSON.stringify(value));

/** Chooses one of a list. Where one has to choose and there is one thing to choose, it is chosen. */
export function Select({ id, field, value, isWrong, onChange, onLeave, options, isLoading }: InputProps & { options: Option[]; isLoading?: boolean }) {
  const words = useText().wizard;
  const only = onlyChoice(
    field,
    options.filter((option) => !option.isDisabled),
  );
  const chosen = keyOf(value);
  const isInUse = chosen !== '' && chosen === keyOf(field.inUse);
  const isKnown = options.some((option) => keyOf(option.value) === chosen) || (isInUse && !isLoading);
  useEffect(() => {
    if (isLoading || isInUse) return;
    if (only && chosen !== keyOf(only.value)) onChange(only.value);
    // A stored choice may be gone. Choices that the server evaluates may be outdated: the server reports these
    // itself.
    else if (isLoading === false && !only && chosen !== '' && !isKnown) onChange('');
  });
  return (
    <>
      <FormSelect
        id={id}
        value={isKnown ? chosen : ''}
        isRequired={field.required}
        validated={isWrong ? 'error' : 'default'}
        aria-describedby={describedBy(id)}
        onChange={(_event, key) => onChange(options.find((option) => keyOf(option.value) === key)?.value ?? (key === keyOf(field.inUse) ? field.inUse : ''))}
        onBlur={onLeave}
      >
        <FormSelectOption value="" label={isLoading ? words.checking : field.required ? words.choose : words.none} isPlaceholder={field.required} />
        {isInUse && isKnown && !options.some((option) => keyOf(option.value) === chosen) && (
          <FormSelectOption value={chosen} label={words.notOffered(textOf(value))} />
        )}
        {options.map((option) => (
          <FormSelectOption key={keyOf(option.value)} value={keyOf(option.value)} label={option.label} isDisabled={option.isDisabled} />
        ))}
      </FormSelect>
      {!isLoading && options.length === 0 && (
        <HelperText>
          <HelperTextItem variant={field.required ? 'warning' : 'default'}>{field.empty_message || words.noChoice}</HelperTextItem>
        </HelperText>
      )}
    </>
  );
}
