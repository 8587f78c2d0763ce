/** Where pods of the load leave their reports, on every node. */
export const REPORTS = '/var/lib/load';
