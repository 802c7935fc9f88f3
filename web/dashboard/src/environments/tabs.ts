/** The tabs of an environment's page, as its address names them. */
export const tabs = ['components', 'topology', 'history', 'past', 'access'] as const;

export type EnvironmentTab = (typeof tabs)[number];
