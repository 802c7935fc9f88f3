import type { Texts } from '../en';

export const deployments: Texts['deployments'] = {};
