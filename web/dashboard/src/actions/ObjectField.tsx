import { Checkbox, FormSelect, FormSelectOption, HelperText, HelperTextItem, Skeleton } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { labelOf, objectsQuery } from '../wizard/objects';
import type { Field } from './schema';

interface Props {
  id: string;
  environment: string;
  session?: string;
  field: Field;
  /** The chosen ids, each on a line of its own. */
  value: string;
  validated: 'error' | 'default';
  onChange: (value: string) => void;
}

/** Chooses one of the environment's objects of a class, or several. */
export function ObjectField({ id, environment, session, field, value, validated, onChange }: Props) {
  const text = useText();
  const words = text.actions;
  const objects = useQuery(objectsQuery(environment, session, [field.objectClass]));
  if (objects.error) return <Failure error={objects.error} onRetry={() => void objects.refetch()} />;
  if (!objects.data) return <Skeleton screenreaderText={text.shell.loading} />;
  if (objects.data.length === 0) {
    return (
      <HelperText>
        <HelperTextItem variant={field.required ? 'warning' : 'default'}>{words.noObject(field.objectClass)}</HelperTextItem>
      </HelperText>
    );
  }
  if (field.kind === 'objects') {
    const chosen = value.split('\n').filter(Boolean);
    const toggle = (one: string, on: boolean) => onChange([...chosen.filter((each) => each !== one), ...(on ? [one] : [])].join('\n'));
    return objects.data.map((one) => (
      <Checkbox key={one.id} id={`${id}-${one.id}`} label={labelOf(one)} isChecked={chosen.includes(one.id)} onChange={(_event, on) => toggle(one.id, on)} />
    ));
  }
  return (
    <FormSelect id={id} value={value} validated={validated} isRequired={field.required} onChange={(_event, next) => onChange(next)}>
      <FormSelectOption value="" label={words.choose} />
      {objects.data.map((one) => (
        <FormSelectOption key={one.id} value={one.id} label={labelOf(one)} />
      ))}
    </FormSelect>
  );
}
