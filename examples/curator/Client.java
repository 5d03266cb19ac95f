import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's InterProcessMutex and InterProcessReadWriteLock, as their documentation uses them, for lockcheck. */
public class Client {
    static final ObjectMapper json = new ObjectMapper();
    static final Map<String, InterProcessMutex> locks = new ConcurrentHashMap<>(); // by key
    static final Map<String, InterProcessReadWriteLock> pairs = new ConcurrentHashMap<>(); // by key
    static final Map<String, Hold> held = new ConcurrentHashMap<>(); // by attempt
    static final boolean LISTENS = !"no".equals(System.getenv("LISTENS"));
    static final boolean READ_WRITE = "read-write".equals(System.getenv("LOCK"));
    static CuratorFramework curator;

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null;) {
            JsonNode q = json.readTree(line);
            if (q.get("op").asText().equals("cancel")) {
                continue;
            }
            Map<String, Object> answer;
            try {
                answer = answer(q);
            } catch (Exception e) {
                answer = Map.of("error", Map.of("text", e.toString()));
            }
            say(Map.of("id", q.get("id").asLong(), answer.keySet().iterator().next(), answer.values().iterator().next()));
        }
        System.exit(0);
    }

    static Map<String, Object> answer(JsonNode q) throws Exception {
        return switch (q.get("op").asText()) {
            case "hello" -> hello(q);
            case "acquire" -> acquire(q);
            case "release" -> release(q);
            default -> Map.of("error", Map.of("effect", "none", "text", "not supported"));
        };
    }

    static Map<String, Object> hello(JsonNode q) {
        var hosts = new StringJoiner(",");
        q.get("servers").forEach(s -> hosts.add(s.get("host").asText() + ":" + s.get("port").asInt()));
        curator = CuratorFrameworkFactory.newClient(
            hosts.toString(), q.get("ttl_ms").asInt(), q.get("timeout_ms").asInt(), new ExponentialBackoffRetry(1000, 3));
        curator.getConnectionStateListenable().addListener((client, state) -> {
            if (LISTENS && (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST)) {
                held.keySet().forEach(attempt -> say(Map.of("event", "lost", "attempt", attempt, "text", state.toString())));
            }
        });
        curator.start();
        return Map.of("ok", Map.of("protocol", 1, "client", "Curator 5.7.1", "now", System.nanoTime()));
    }

    record Hold(InterProcessMutex lock, long session) {}

    static InterProcessMutex lock(JsonNode q) {
        var key = q.get("key").asText();
        if (!READ_WRITE) {
            return locks.computeIfAbsent(key, k -> new InterProcessMutex(curator, "/locks/" + k));
        }
        var pair = pairs.computeIfAbsent(key, k -> new InterProcessReadWriteLock(curator, "/locks/" + k));
        return q.path("shared").asBoolean() ? pair.readLock() : pair.writeLock();
    }

    static Map<String, Object> acquire(JsonNode q) throws Exception {
        var lock = lock(q); // an InterProcessMutex by its key
        if (!lock.acquire(q.get("wait_ms").asLong(), TimeUnit.MILLISECONDS)) {
            return Map.of("busy", Map.of());
        }
        try {
            held.put(q.get("attempt").asText(), new Hold(lock, session()));
        } catch (Exception e) {
            lock.release(); // nobody could do it later
            throw e;
        }
        return Map.of("ok", Map.of());
    }

    static Map<String, Object> release(JsonNode q) throws Exception {
        var hold = held.remove(q.get("attempt").asText());
        if (hold == null) {
            return Map.of("error", Map.of("text", "this client does not have it"));
        }
        boolean gone;
        try {
            gone = hold.session != session();
        } finally {
            // Is content if there is nothing to release. Without it the mutex would count its thread as the holder,
            // and grant it the lock the next time without a word to ZooKeeper.
            hold.lock.release();
        }
        if (gone) {
            return Map.of("not_held", Map.of());
        }
        if (hold.session != session()) {
            return Map.of("error", Map.of("text", "the session ended during the release"));
        }
        return Map.of("ok", Map.of());
    }

    static long session() throws Exception {
        return curator.getZookeeperClient().getZooKeeper().getSessionId();
    }

    static synchronized void say(Map<String, Object> line) {
        try {
            System.out.println(json.writeValueAsString(line));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
