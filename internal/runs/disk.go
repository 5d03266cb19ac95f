package runs

import (
	"context"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

// syncAtFirstGrant makes durable what servers have written up to the first grant. Production servers have run for a
// long time, and their tables, buckets and memberships are on disk. A run begins with all of these just created.
func (r *run) syncAtFirstGrant() func(history.Event) {
	begun := false
	return func(e history.Event) {
		if begun || e.F != history.Acquire || e.Type != history.OK {
			return
		}
		begun = true
		go syncDisks(r.cluster.Servers(), r.progress.Step)
	}
}

// syncLimit is how long a server's disk may take to sync.
const syncLimit = 5 * time.Second

// syncDisks syncs the disks of all servers at once. A server that is dead by now has nothing to sync.
func syncDisks(servers []*clusters.Node, report func(format string, args ...any)) {
	ctx, cancel := context.WithTimeout(context.Background(), syncLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() {
			if err := server.Host.SyncDisk(ctx); err != nil {
				report("the disk of %s was not synced, so a power loss may take what it wrote before the first grant: %v", server.Name, err)
			}
		})
	}
	all.Wait()
}
