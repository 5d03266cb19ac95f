<?php
// Symfony's Lock component with its Redis store, as its documentation uses it, for lockcheck.
require '/usr/share/php/Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

$locks = []; // by attempt

$operations = [
    'hello' => function ($q) use (&$factory) {
        $redis = new Redis();
        $redis->connect($q->servers[0]->host, $q->servers[0]->port, $q->timeout_ms / 1000);
        $factory = new LockFactory(new RedisStore($redis, (float) (getenv('INITIAL_TTL') ?: 300)));
        $version = trim(shell_exec("dpkg-query -f '\${Version}' -W php-symfony-lock"));
        return ['ok' => ['protocol' => 1, 'client' => "symfony/lock $version", 'now' => hrtime(true)]];
    },
    'acquire' => function ($q) use (&$factory, &$locks) {
        $lock = $factory->createLock($q->key, $q->ttl_ms / 1000);
        if (!$lock->acquire()) {
            return ['busy' => (object) []];
        }
        $locks[$q->attempt] = $lock;
        return ['ok' => ['until' => until($lock)]];
    },
    'renew' => function ($q) use (&$locks) {
        $locks[$q->attempt]->refresh();
        return ['ok' => ['until' => until($locks[$q->attempt])]];
    },
    'release' => function ($q) use (&$locks) {
        $lock = $locks[$q->attempt] ?? null;
        unset($locks[$q->attempt]);
        if ($lock === null) {
            return ['error' => ['text' => 'this client does not have it']];
        }
        $acquired = $lock->isAcquired();
        $lock->release(); // is content if there is nothing to release
        return [$acquired ? 'ok' : 'not_held' => (object) []];
    },
];

function until($lock)
{
    return hrtime(true) + (int) ($lock->getRemainingLifetime() * 1e9);
}

while (($line = fgets(STDIN)) !== false) {
    $q = json_decode($line);
    if ($q->op === 'cancel') {
        continue;
    }
    $unknown = fn ($q) => ['error' => ['effect' => 'none', 'text' => "not supported: $q->op"]];
    try {
        $answer = ($operations[$q->op] ?? $unknown)($q);
    } catch (LockConflictedException $e) {
        $answer = ['not_held' => (object) []];
    } catch (Exception $e) {
        $answer = ['error' => ['text' => get_class($e) . ': ' . $e->getMessage()]];
    }
    echo json_encode(['id' => $q->id] + $answer), "\n";
}
