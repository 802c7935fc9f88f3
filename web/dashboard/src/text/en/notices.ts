export const notices = {
  title: 'Notifications',
  ended: (state: string) => `It has ended: ${state}`,
  show: 'Show its log',
};
