import { Button, Content, Flex, FlexItem, TextInput } from '@patternfly/react-core';
import { MinusCircleIcon, PlusCircleIcon } from '@patternfly/react-icons';

import { useText } from '../text';
import type { Pair } from './schema';

/** Arguments by name and value, without a schema. */
export function ArgumentPairs({ pairs, onChange }: { pairs: Pair[]; onChange: (pairs: Pair[]) => void }) {
  const text = useText().actions;
  const change = (at: number, part: Partial<Pair>) => onChange(pairs.map((pair, i) => (i === at ? { ...pair, ...part } : pair)));
  return (
    <>
      <Content component="p">{text.noSchema}</Content>
      {pairs.map((pair, i) => (
        <Flex key={i} flexWrap={{ default: 'nowrap' }}>
          <FlexItem grow={{ default: 'grow' }}>
            <TextInput
              aria-label={text.argument}
              placeholder={text.argument}
              value={pair.name}
              onChange={(_event, name) => change(i, { name })}
              autoFocus
            />
          </FlexItem>
          <FlexItem grow={{ default: 'grow' }}>
            <TextInput aria-label={text.value} placeholder={text.value} value={pair.value} onChange={(_event, value) => change(i, { value })} />
          </FlexItem>
          <FlexItem>
            <Button
              variant="plain"
              icon={<MinusCircleIcon />}
              aria-label={text.removeArgument(pair.name)}
              onClick={() => onChange(pairs.filter((_pair, at) => at !== i))}
            />
          </FlexItem>
        </Flex>
      ))}
      <div>
        <Button variant="link" isInline icon={<PlusCircleIcon />} onClick={() => onChange([...pairs, { name: '', value: '' }])}>
          {text.addArgument}
        </Button>
      </div>
    </>
  );
}
