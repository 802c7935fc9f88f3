import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, ExpandableSection, Label, LabelGroup } from '@patternfly/react-core';
import { ExternalLinkAltIcon, LockIcon } from '@patternfly/react-icons';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { classOf, nameOf, type ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { isSecret, linkOf } from './components';

interface Inside {
  environment: string;
  /** The names of the environment's objects, by id: a value that is an id is a reference. */
  names: Map<string, string>;
  /** Puts values below their names, for where there is little room. */
  stacked?: boolean;
}

/** The properties of an object as a list that opens where objects hold others. Those without a value are folded. */
export function Properties({ object, ...inside }: { object: ObjectModel } & Inside) {
  const text = useText().components;
  const entries = Object.entries(object).filter(([name]) => name !== '?');
  const [set, unset] = [entries.filter(([, value]) => !isNothing(value)), entries.filter(([, value]) => isNothing(value))];
  return (
    <>
      {set.length > 0 && (
        <DescriptionList isCompact isHorizontal={!inside.stacked} horizontalTermWidthModifier={{ default: '12ch', md: '22ch' }}>
          {set.map(([name, value]) => (
            <DescriptionListGroup key={name}>
              <DescriptionListTerm>{name}</DescriptionListTerm>
              <DescriptionListDescription className="burano-breaks">
                <Value name={name} value={value} {...inside} />
              </DescriptionListDescription>
            </DescriptionListGroup>
          ))}
        </DescriptionList>
      )}
      {unset.length > 0 && (
        <ExpandableSection toggleText={text.withoutValue(unset.length)} isIndented>
          <span className="burano-breaks">{unset.map(([name]) => name).join(', ')}</span>
        </ExpandableSection>
      )}
    </>
  );
}

/** Whether a property has no value. */
const isNothing = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length === 0);

function Value({ name, value, ...inside }: { name: string; value: unknown } & Inside) {
  const text = useText().components;
  if (isNothing(value)) return <small>{text.empty}</small>;
  if (typeof value === 'string') return <Text name={name} value={value} {...inside} />;
  if (typeof value === 'boolean') return <>{value ? text.yes : text.no}</>;
  if (typeof value !== 'object') return <>{String(value)}</>;
  if (!Array.isArray(value)) return <Nested title={titleOf(value as ObjectModel)} object={value as ObjectModel} {...inside} />;
  if (value.every((item) => typeof item !== 'object')) {
    return (
      <LabelGroup numLabels={20} aria-label={name}>
        {value.map((item, i) => (
          <Label key={i} variant="outline">
            <Value name={name} value={item} {...inside} />
          </Label>
        ))}
      </LabelGroup>
    );
  }
  return (
    <>
      {value.map((item, i) => (
        <div key={(item as ObjectModel | null)?.['?']?.id ?? i}>
          <Value name={name} value={item} {...inside} />
        </div>
      ))}
    </>
  );
}

function Text({ name, value, environment, names }: { name: string; value: string } & Inside) {
  const text = useText().components;
  if (isSecret(name)) {
    return (
      <Label icon={<LockIcon />} variant="outline" isCompact title={text.hiddenWhat}>
        {text.hidden}
      </Label>
    );
  }
  const called = names.get(value);
  if (called !== undefined) {
    return (
      <Link to="/environments/$environment/components/$object" params={{ environment, object: value }}>
        {called || value}
      </Link>
    );
  }
  const link = linkOf(name, value);
  if (!link) return <span className="burano-value">{value}</span>;
  return (
    <a href={link} target="_blank" rel="noopener noreferrer">
      {value} <ExternalLinkAltIcon aria-label={text.opensNewTab} />
    </a>
  );
}

const titleOf = (object: ObjectModel): string => {
  if (!object['?']) return `{${Object.keys(object).slice(0, 4).join(', ')}}`;
  const kind = classOf(object).split('.').pop() ?? '';
  const name = nameOf(object);
  return name === kind ? kind : `${kind} ${name}`;
};

/** An object in another one; its content is rendered when it is opened. */
function Nested({ title, object, ...inside }: { title: string; object: ObjectModel } & Inside) {
  const [open, setOpen] = useState(false);
  const id = object['?']?.id;
  return (
    <ExpandableSection toggleText={title} isExpanded={open} onToggle={(_event, next) => setOpen(next)} isIndented>
      {open && (
        <>
          {id && (
            <p>
              <Link to="/environments/$environment/components/$object" params={{ environment: inside.environment, object: id }}>
                {title}
              </Link>
            </p>
          )}
          <Properties object={object} {...inside} />
        </>
      )}
    </ExpandableSection>
  );
}
