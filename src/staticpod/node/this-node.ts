/** The URL with `localhost` as this node: on a machine with several nodes each has an address of its own. */
export function onThisNode(url: string, env: Readonly<Record<string, string | undefined>>): string {
  const address = env.ROTUNDA_NODE_ADDRESS;
  const wanted = new URL(url);
  if (!address || wanted.hostname !== 'localhost') return url;
  wanted.hostname = address.includes(':') ? `[${address}]` : address;
  return wanted.toString();
}
