# with_advisory_lock on PostgreSQL, as its documentation uses it, for lockcheck.
require 'active_record'
require 'json'
require 'with_advisory_lock'

$stdout.sync = true
$output = Mutex.new
$held = {} # by attempt: where the block that holds the lock waits for its end

class Tag < ActiveRecord::Base; end

def say(id, answer)
  $output.synchronize { puts JSON.generate({ id: id }.merge(answer)) }
end

def hello(q)
  server = q['servers'][0]
  ActiveRecord::Base.establish_connection(
    adapter: 'postgresql', host: server['host'], port: server['port'], username: 'postgres', database: 'postgres', pool: 20
  )
  version = Gem.loaded_specs['with_advisory_lock'].version
  say(q['id'], ok: { protocol: 1, client: "with_advisory_lock #{version}", now: Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) })
end

# The critical section is a block, so that each hold has a thread of its own. It answers
# the release, too, once the block has ended.
def acquire(q)
  release = session = nil
  result = Tag.with_advisory_lock_result(q['key'], timeout_seconds: q['wait_ms'] / 1000.0) do
    ends = $held[q['attempt']] = Queue.new
    session = backend
    say(q['id'], ok: {})
    release = ends.pop
  end
  return say(q['id'], busy: {}) unless result.lock_was_acquired?

  # Its end is content if there is nothing to release.
  say(release['id'], session == backend ? { ok: {} } : { not_held: {} })
rescue ActiveRecord::ActiveRecordError => e
  say((release || q)['id'], error: { text: e.message.lines.first })
ensure
  ActiveRecord::Base.connection_handler.clear_active_connections!
end

# The server process of this thread's connection.
def backend
  Tag.connection.instance_variable_get(:@raw_connection)&.backend_pid
end

def release(q)
  ends = $held.delete(q['attempt'])
  return say(q['id'], error: { text: 'this client does not have it' }) unless ends

  ends << q
end

$stdin.each_line do |line|
  q = JSON.parse(line)
  case q['op']
  when 'hello' then hello(q)
  when 'acquire' then Thread.new { acquire(q) }
  when 'release' then release(q)
  when 'cancel' then next
  else say(q['id'], error: { effect: 'none', text: "not supported: #{q['op']}" })
  end
end
