package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/stats"
	"lockcheck/workloads"
)

// How the worker is compared with a bare loop of the same client: in turns, so that what else
// the machine does falls on both.
const (
	rounds = 15
	each   = time.Second
)

// harness measures how many holds a second a worker makes that does nothing else, and how
// many a loop makes that calls its client.
func harness(ctx context.Context, binary, lock, server string) error {
	info, known := clients.ByName(lock)
	if !known {
		return fmt.Errorf("there is no lock %q", lock)
	}
	config := clients.Config{Worker: "w1", Nodes: []string{server}, TTL: lease, Timeout: timeout}
	var bare, worked []float64
	for round := range rounds {
		perSecond, err := bareLoop(ctx, info, config)
		if err != nil {
			return err
		}
		bare = append(bare, perSecond)
		if perSecond, err = worker(ctx, binary, info, config, round); err != nil {
			return err
		}
		worked = append(worked, perSecond)
	}
	loop, held := stats.Median(bare), stats.Median(worked)
	fmt.Printf("\n| %s, one client, no section, median of %d times %s | holds a second |\n| --- | --- |\n| a loop of the client | %.0f |\n| a worker | %.0f, %.1f %% fewer |\n",
		lock, rounds, each, loop, held, 100*(1-held/loop))
	return nil
}

// bareLoop acquires and releases, and nothing else.
func bareLoop(ctx context.Context, info clients.Info, config clients.Config) (perSecond float64, err error) {
	lock, err := info.Open(config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	began, holds := time.Now(), 0
	for ; time.Since(began) < each; holds++ {
		grant, err := lock.Acquire(ctx, clients.Attempt{Key: "bare", ID: fmt.Sprintf("w1-%d", holds), TTL: config.TTL})
		if err != nil {
			return 0, err
		}
		if err := lock.Release(ctx, grant); err != nil {
			return 0, err
		}
	}
	return float64(holds) / time.Since(began).Seconds(), nil
}

// worker is a worker process of lockcheck, whose record is read as a run reads it. It has a lock of
// its own: what is cut short at the end of one is not in the way of the next.
func worker(ctx context.Context, binary string, info clients.Info, config clients.Config, round int) (float64, error) {
	process := exec.CommandContext(ctx, binary, "worker")
	process.Stderr = os.Stderr
	commands, err := process.StdinPipe()
	if err != nil {
		return 0, err
	}
	record, err := process.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := process.Start(); err != nil {
		return 0, err
	}
	if err := workloads.Configure(commands, workloads.WorkerConfig{
		Name: config.Worker, Index: round + 1, Lock: info.Name, Nodes: config.Nodes, Workload: history.WorkloadMutex,
		Use: workloads.Use{TTL: config.TTL, Bare: true, OwnKey: true}, Timeout: config.Timeout,
	}); err != nil {
		return 0, err
	}
	go func() {
		_, _ = io.WriteString(commands, workloads.CommandOpen+"\n"+workloads.CommandGo+"\n")
		time.Sleep(each)
		_ = commands.Close()
	}()
	var first, last int64
	holds := 0
	for lines := bufio.NewScanner(record); lines.Scan(); {
		var e history.Event
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &e); err != nil {
			return 0, err
		}
		if first == 0 {
			first = e.Time
		}
		if e.F == history.Release && e.Type == history.OK {
			holds, last = holds+1, e.Time
		}
	}
	return float64(holds) / time.Duration(last-first).Seconds(), process.Wait()
}
