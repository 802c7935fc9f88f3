// Fields whose values are chosen from the cloud.
import { useQuery } from '@tanstack/react-query';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import {
  cloudQuery,
  fits,
  imagesOf,
  missing,
  networkChoices,
  requirementsOf,
  showMemory,
  showRequirements,
  type CloudKind,
  type Flavor,
  type Image,
  type NetworkChoice,
} from './cloud';
import type { InputProps } from './input';
import { useAskedRegion } from './place';
import { Select, type Option } from './Select';

const kinds: Partial<Record<string, CloudKind>> = {
  flavor: 'flavors',
  image: 'images',
  keypair: 'keypairs',
  azone: 'availability-zones',
  network: 'networks',
};

export const isFromCloud = (type: string | undefined): boolean => kinds[type ?? ''] !== undefined;

export function CloudSelect(props: InputProps) {
  const { field } = props;
  const text = useText();
  const words = text.wizard;
  const region = useAskedRegion();
  const asked = useQuery({ ...cloudQuery(kinds[field.type ?? ''] ?? 'flavors', region ?? ''), enabled: region !== undefined });
  const found = asked.data;

  const flavorOption = (flavor: Flavor): Option => {
    const requirements = requirementsOf(field.options);
    const label = words.flavor(flavor.name ?? '', flavor.vcpus ?? 0, showMemory(flavor.ram ?? 0), flavor.disk ?? 0);
    if (fits(flavor, requirements)) return { value: flavor.name, label };
    const reasons = showRequirements(missing(flavor, requirements), text.details).join(', ');
    return { value: flavor.name, label: words.flavorUnfit(label, reasons), isDisabled: true };
  };
  const imageOption = (image: Image): Option => {
    const least = { least: { ram: image.min_ram || undefined, disk: image.min_disk || undefined }, most: {} };
    const needs = showRequirements(least, text.details).join(', ');
    const name = image.title || image.name || image.id || '';
    return { value: image.id, label: needs ? words.imageNeeds(name, needs) : name };
  };
  const networkOption = ({ value, network, subnet }: NetworkChoice): Option => {
    if (!network) return { value, label: words.auto };
    const name = network.name || network.id || '';
    return { value, label: subnet && (network.subnets ?? []).length > 1 ? words.subnet(name, subnet) : name };
  };
  const options = (): Option[] => {
    switch (field.type) {
      case 'flavor':
        return (found?.flavors ?? []).map(flavorOption);
      case 'image':
        return imagesOf(found?.images ?? [], field.options?.image_type).map(imageOption);
      case 'keypair':
        return (found?.keypairs ?? []).map((one) => ({ value: one.name, label: one.name ?? '' }));
      case 'azone':
        return (found?.availability_zones ?? []).map((one) =>
          one.available === false ? { value: one.name, label: words.unavailable(one.name ?? ''), isDisabled: true } : { value: one.name, label: one.name ?? '' },
        );
      default:
        return networkChoices(found?.networks ?? [], field.options).map(networkOption);
    }
  };
  return (
    <>
      {asked.error && <Failure error={asked.error} onRetry={() => void asked.refetch()} />}
      <Select {...props} options={options()} isLoading={!found} />
    </>
  );
}
