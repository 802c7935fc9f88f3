import type { Texts } from '../en';

export const catalog: Texts['catalog'] = {};
