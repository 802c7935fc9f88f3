import { Checkbox, FormGroup, FormHelperText, HelperText, HelperTextItem, Switch, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';

import { categoriesQuery } from '../catalog/catalog';
import { useText } from '../text';

/** The typed description of a package beside its file. */
export interface Typed {
  categories: string[];
  tags: string;
  is_public: boolean;
  enabled: boolean;
}

interface Props {
  value: Typed;
  onChange: (value: Typed) => void;
}

export function MetadataFields({ value, onChange }: Props) {
  const words = useText().packages;
  const id = useId();
  const categories = useQuery(categoriesQuery);
  const toggle = (name: string, yes: boolean) =>
    onChange({ ...value, categories: yes ? [...value.categories, name] : value.categories.filter((one) => one !== name) });
  return (
    <>
      <FormGroup label={words.categories} role="group" isInline isStack={false}>
        {(categories.data ?? []).map(({ id: key, name = '' }) => (
          <Checkbox key={key} id={`${id}-${key}`} label={name} isChecked={value.categories.includes(name)} onChange={(_event, yes) => toggle(name, yes)} />
        ))}
      </FormGroup>
      <FormGroup label={words.tags} fieldId={`${id}-tags`}>
        <TextInput id={`${id}-tags`} value={value.tags} onChange={(_event, tags) => onChange({ ...value, tags })} />
        <FormHelperText>
          <HelperText>
            <HelperTextItem>{words.tagsWhat}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      </FormGroup>
      <FormGroup role="group" label={words.who} isStack>
        <Switch id={`${id}-active`} label={words.activeWhat} isChecked={value.enabled} onChange={(_event, enabled) => onChange({ ...value, enabled })} />
        <Switch id={`${id}-public`} label={words.publicWhat} isChecked={value.is_public} onChange={(_event, is_public) => onChange({ ...value, is_public })} />
      </FormGroup>
    </>
  );
}
