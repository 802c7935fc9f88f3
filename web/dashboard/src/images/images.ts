import { answered, api } from '../api/client';
import { cloudQuery, type Answer } from '../wizard/cloud';

/** Images that the project can use in a region, '' for Burano's own. Images with a type are marked for forms. */
export const imagesQuery = (region: string) => ({ ...cloudQuery('images', region), select: (answer: Answer) => answer.images ?? [] });

/** Marks an image, so that forms offer it. */
export const markImage = (image: string, type: string, title: string): Promise<unknown> =>
  answered(api.PUT('/burano/v1/cloud/images/{image}/mark', { params: { path: { image } }, body: { type, title } }));

export const unmarkImage = (image: string): Promise<unknown> =>
  answered(api.DELETE('/burano/v1/cloud/images/{image}/mark', { params: { path: { image } }, parseAs: 'text' }));

/** Writes a text so that a shell takes it as one word. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The command by which an image is marked. */
export const markCommand = (image: string, type: string, title: string): string =>
  `openstack image set --property ${quoted(`murano_image_info=${JSON.stringify({ type, title })}`)} ${quoted(image)}`;

export const unmarkCommand = (image: string): string => `openstack image unset --property murano_image_info ${quoted(image)}`;

/** Types that forms ask for. */
export const imageTypes = ['linux', 'windows.2012', 'cirros.demo'] as const;
