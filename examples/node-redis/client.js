// A lock on node-redis as programs write it themselves, for lockcheck: SET NX PX, and
// scripts that compare the value before they delete the key or extend its lease.
const { createClient } = require('redis');
const readline = require('readline');
const sleep = require('util').promisify(setTimeout);

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;
const RENEW = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`;

let client;
const owner = (q, ...more) => ({ keys: [q.key], arguments: [q.attempt, ...more] });

const operations = {
  async hello(q) {
    client = createClient({ socket: { host: q.servers[0].host, port: q.servers[0].port } });
    client.on('error', (e) => console.error(String(e)));
    await client.connect();
    const { version } = require('redis/package.json');
    return { ok: { protocol: 1, client: `node-redis ${version}`, now: Number(process.hrtime.bigint()) } };
  },
  async acquire(q) {
    const done = await client.set(q.key, q.attempt, { NX: true, PX: q.ttl_ms });
    return done === 'OK' ? { ok: {} } : { busy: {} };
  },
  async renew(q) {
    return (await client.eval(RENEW, owner(q, String(q.ttl_ms)))) ? { ok: {} } : { not_held: {} };
  },
  async release(q) {
    return (await client.eval(RELEASE, owner(q))) ? { ok: {} } : { not_held: {} };
  },
  async work(q) {
    if (process.env.WORK === 'busy') {
      for (const end = performance.now() + q.ms; performance.now() < end;); // computes, and lets nothing else run
    } else {
      await sleep(q.ms);
    }
    return { ok: {} };
  },
};

async function answer(q) {
  if (!(q.op in operations)) return { error: { effect: 'none', text: `not supported: ${q.op}` } };
  try {
    return await operations[q.op](q);
  } catch (e) {
    return { error: { text: String(e) } };
  }
}

readline.createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const q = JSON.parse(line);
    if (q.op === 'cancel') return;
    console.log(JSON.stringify({ id: q.id, ...(await answer(q)) }));
  })
  .on('close', () => process.exit());
