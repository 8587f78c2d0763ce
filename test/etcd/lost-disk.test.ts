/** What a real etcd does when the disk of a member is lost: `src/twin/etcd.ts` says the same of its model. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { findEtcd, NO_ETCD } from './binary.ts';
import { RealCluster } from './cluster.ts';

const binary = findEtcd();

describe('the disk of a member is lost', { skip: binary === undefined ? NO_ETCD : false }, () => {
  let cluster: RealCluster;
  before(async () => {
    cluster = await RealCluster.start(binary as string);
  });
  after(() => cluster.close());

  test('it cannot come back as who it was; removed and emptied once more, the operator lets it in as a new one', async () => {
    await cluster.founded();
    const node = cluster.nodes[2] ?? assert.fail('no third node');
    const memberOn = async (name: string) =>
      (await cluster.gateway.health()).find(({ member }) => member.peerURLs.some(url => url.includes(`${name}:`)));
    const before = (await memberOn(node.address)) ?? assert.fail('no such member');
    await cluster.loseDisk(node);
    // It is started a few times, and ends each time.
    const startsBefore = node.starts;
    await cluster.until('some starts in vain', () => node.starts >= startsBefore + 3);
    assert.ok(
      node.log.some(line => /tocommit\(\d+\) is out of range/.test(line)),
      node.log.slice(-20).join('\n'),
    );
    assert.equal((await memberOn(node.address))?.healthy, false);

    await cluster.gateway.remove(before.member.id);
    // It has begun to write a new log under its old name: that has to go as well.
    await cluster.loseDisk(node);
    await cluster.until('a vote for it', async () => {
      const found = await memberOn(node.address);
      return found !== undefined && found.member.id !== before.member.id && found.healthy && !found.member.isLearner;
    });
  });
});
