export const findings = {
  title: 'Findings',
  count: (count: number) => (count === 1 ? '1 finding' : `${count} findings`),
  since: (age: string) => `Found ${age}`,
  repairs: (count: number) => (count === 1 ? '1 repair was started' : `${count} repairs were started`),
  lastRepair: 'Last repair',
};
