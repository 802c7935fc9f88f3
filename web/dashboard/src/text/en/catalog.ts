export const catalog = {};
