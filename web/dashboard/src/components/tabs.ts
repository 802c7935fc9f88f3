/** The tabs of a component's page, as its address names them. */
export const componentTabs = ['overview', 'log', 'metadata'] as const;

export type ComponentTab = (typeof componentTabs)[number];
