// Lockcheck's worker with redsync 4.12.0 in place of the version that lockcheck
// itself has: two versions of one module cannot be linked into one program.
module lockcheck/variants/redsync-4.12.0

go 1.26.0

require lockcheck v0.0.0

require (
	github.com/bsm/redislock v0.9.4 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-redsync/redsync/v4 v4.17.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace lockcheck => ../..

replace github.com/go-redsync/redsync/v4 => github.com/go-redsync/redsync/v4 v4.12.0
