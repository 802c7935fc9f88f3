import { Checkbox, FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, TextArea, TextInput } from '@patternfly/react-core';
import { useId } from 'react';

import { useText } from '../text';
import { ObjectField } from './ObjectField';
import type { Field, Mistake } from './schema';

interface Props {
  environment: string;
  /** The source of the offered objects: a draft, else the deployed model. */
  session?: string;
  fields: Field[];
  typed: Record<string, string>;
  mistakes: Record<string, Mistake>;
  onType: (name: string, value: string) => void;
}

/** A form for the arguments that a schema describes. */
export function ArgumentFields({ environment, session, fields, typed, mistakes, onType }: Props) {
  const id = useId();
  return fields.map((field) => (
    <One
      key={field.name}
      id={`${id}-${field.name}`}
      environment={environment}
      session={session}
      field={field}
      value={typed[field.name] ?? field.initial}
      mistake={mistakes[field.name]}
      onChange={(value) => onType(field.name, value)}
    />
  ));
}

interface OneProps {
  id: string;
  environment: string;
  session?: string;
  field: Field;
  value: string;
  mistake?: Mistake;
  onChange: (value: string) => void;
}

function One({ id, environment, session, field, value, mistake, onChange }: OneProps) {
  const { actions: text, draft: words } = useText();
  const effect = field.effect && words.whenChanged(words.effects[field.effect.effect], field.effect.text ?? '');
  const help = mistake ? text.mistakes[mistake] : field.help || (field.kind === 'list' ? text.onePerLine : '');
  const validated = mistake ? 'error' : 'default';
  if (field.kind === 'boolean') {
    return (
      <Checkbox
        id={id}
        label={field.title}
        description={[field.help, effect].filter(Boolean).join(' ') || undefined}
        isChecked={value === 'true'}
        onChange={(_event, checked) => onChange(String(checked))}
      />
    );
  }
  const shared = { id, value, validated, isRequired: field.required, 'aria-describedby': help || effect ? `${id}-help` : undefined } as const;
  return (
    <FormGroup label={field.title} fieldId={id} isRequired={field.required} role={field.kind === 'objects' ? 'group' : undefined}>
      {(field.kind === 'object' || field.kind === 'objects') && (
        <ObjectField id={id} environment={environment} session={session} field={field} value={value} validated={validated} onChange={onChange} />
      )}
      {field.kind === 'choice' && (
        <FormSelect {...shared} onChange={(_event, next) => onChange(next)}>
          <FormSelectOption value="" label={text.choose} />
          {field.choices.map((choice) => (
            <FormSelectOption key={choice.text} value={choice.text} label={choice.text} />
          ))}
        </FormSelect>
      )}
      {(field.kind === 'list' || field.kind === 'lines' || field.kind === 'json') && (
        <TextArea {...shared} resizeOrientation="vertical" autoResize onChange={(_event, next) => onChange(next)} />
      )}
      {(field.kind === 'text' || field.kind === 'secret' || field.kind === 'number') && (
        <TextInput
          {...shared}
          type={field.kind === 'secret' ? 'password' : field.kind}
          autoComplete={field.kind === 'secret' ? 'new-password' : 'off'}
          placeholder={field.placeholder}
          min={field.minimum ?? undefined}
          max={field.maximum ?? undefined}
          step={field.kind === 'number' && !field.whole ? 'any' : undefined}
          onChange={(_event, next) => onChange(next)}
        />
      )}
      {(help || effect) && (
        <FormHelperText>
          <HelperText id={`${id}-help`}>
            {help && <HelperTextItem variant={validated}>{help}</HelperTextItem>}
            {effect && <HelperTextItem>{effect}</HelperTextItem>}
          </HelperText>
        </FormHelperText>
      )}
    </FormGroup>
  );
}
