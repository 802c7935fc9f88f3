// The address of a cluster's page. It is read before the page is loaded.

/** The tabs of a cluster's page, as its address names them. */
export const clusterTabs = ['overview', 'running', 'protection'] as const;

export type ClusterTab = (typeof clusterTabs)[number];

export interface ClusterLook {
  tab?: ClusterTab;
  namespace?: string;
  search?: string;
  /** Only pods that are not as they should be. */
  ill?: true;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

export const readLook = (search: Record<string, unknown>): ClusterLook => ({
  tab: clusterTabs.find((tab) => tab === search.tab),
  namespace: textOf(search.namespace),
  search: textOf(search.search),
  ill: search.ill ? true : undefined,
});
