import { useText } from '../text';
import { CloudSelect, isFromCloud } from './CloudSelect';
import { FieldRow } from './FieldRow';
import type { InputProps } from './input';
import { ObjectSelect } from './ObjectSelect';
import { Select } from './Select';
import { LineInput, SecretInput, TextAreaInput, TickInput } from './TypedInput';

interface Props extends InputProps {
  errors: string[];
  /** The second input. */
  repeated: unknown;
  onRepeat: (value: unknown) => void;
}

/** A field of any type. */
export function FieldInput({ errors, repeated, onRepeat, ...props }: Props) {
  const words = useText().wizard;
  const { id, field } = props;
  const isTick = field.type === 'boolean';
  const hint = typeof field.options?.wanted === 'string' ? words.jsonHint(field.options.wanted) : '';
  return (
    <FieldRow
      id={id}
      label={isTick ? '' : field.label || (field.name ? field.name : words.jsonField)}
      title={field.description_title}
      description={field.description}
      help={field.help || hint}
      isRequired={field.required && !isTick}
      errors={errors}
    >
      <Input {...props} />
      {field.confirm && (
        <div className="burano-again">
          <SecretInput {...props} id={`${id}-again`} label={words.again(field.label ?? field.name)} value={repeated} onChange={onRepeat} />
          <small aria-hidden>{words.again(field.label ?? field.name)}</small>
        </div>
      )}
    </FieldRow>
  );
}

function Input(props: InputProps) {
  const { field } = props;
  if (field.secret) return <SecretInput {...props} />;
  if (isFromCloud(field.type)) return <CloudSelect {...props} />;
  switch (field.type) {
    case 'boolean':
      return <TickInput {...props} />;
    case 'text':
    case 'json':
      return <TextAreaInput {...props} />;
    case 'choice':
      return <Select {...props} options={(field.choices ?? []).map((choice) => ({ value: choice.value, label: choice.label ?? choice.value ?? '' }))} />;
    case 'object':
      return <ObjectSelect {...props} />;
    default:
      return <LineInput {...props} />;
  }
}
