import { FormGroup, FormHelperText, FormSelect, FormSelectOption, HelperText, HelperTextItem, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';

import { useText } from '../text';
import { cloudQuery, networkChoices } from '../wizard/cloud';
import { kept, nameOfRegion, useRegion } from '../regions/regions';
import { createEnvironment, type Environment } from './environments';
import { NameDialog } from './NameDialog';
import { defaultNetworks, dualStackNetworks, isIPv6Range } from './networks';

/** Asks for the name of a new environment, and for the region and network of its servers. */
export function CreateDialog({ onDone, onClose }: { onDone: (made: Environment) => void; onClose: () => void }) {
  const text = useText();
  const words = text.environments;
  const id = useId();
  const [chosen, setChosen] = useState('');
  const [ipv6, setIPv6] = useState('');
  const wrong = ipv6 !== '' && !isIPv6Range(ipv6);
  const { regions, region: usual } = useRegion();
  const [picked, setPicked] = useState<string | null>(null);
  const region = picked === null ? usual : kept(regions, picked);
  const networks = networkChoices(useQuery(cloudQuery('networks', region)).data?.networks ?? [], { allow_auto: false });
  const network = networks.find((one) => one.value.join('/') === chosen);
  const wanted = (name: string) => (network ? defaultNetworks(network.value) : ipv6 ? dualStackNetworks(name, ipv6) : undefined);
  return (
    <NameDialog
      title={words.create}
      action={words.create}
      send={(name) => createEnvironment(name, { region, networks: wanted(name) })}
      isRefused={!network && wrong}
      onDone={onDone}
      onClose={onClose}
    >
      {regions.length > 1 && (
        <FormGroup label={words.region} fieldId={`${id}-region`}>
          <FormSelect
            id={`${id}-region`}
            value={nameOfRegion(regions, region)}
            onChange={(_event, value) => {
              setPicked(value);
              setChosen('');
            }}
          >
            {regions.map(({ name }) => (
              <FormSelectOption key={name} value={name} label={name} />
            ))}
          </FormSelect>
        </FormGroup>
      )}
      <FormGroup label={words.network} fieldId={`${id}-network`}>
        <FormSelect id={`${id}-network`} value={chosen} onChange={(_event, value) => setChosen(value)} aria-describedby={`${id}-what`}>
          <FormSelectOption value="" label={words.newNetwork} />
          {networks.map(({ value, network, subnet }) => {
            const name = network?.name || value[0] || '';
            return <FormSelectOption key={value.join('/')} value={value.join('/')} label={subnet ? text.wizard.subnet(name, subnet) : name} />;
          })}
        </FormSelect>
        <FormHelperText>
          <HelperText id={`${id}-what`}>
            <HelperTextItem>{chosen ? words.existingNetworkWhat : words.newNetworkWhat}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      </FormGroup>
      {!network && (
        <FormGroup label={words.ipv6} fieldId={`${id}-ipv6`}>
          <TextInput
            id={`${id}-ipv6`}
            value={ipv6}
            onChange={(_event, value) => setIPv6(value.trim())}
            validated={wrong ? 'error' : 'default'}
            aria-describedby={`${id}-ipv6-what`}
          />
          <FormHelperText>
            <HelperText id={`${id}-ipv6-what`}>
              <HelperTextItem variant={wrong ? 'error' : 'default'}>{words.ipv6What}</HelperTextItem>
            </HelperText>
          </FormHelperText>
        </FormGroup>
      )}
    </NameDialog>
  );
}
