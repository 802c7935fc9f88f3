export const deployments = {};
