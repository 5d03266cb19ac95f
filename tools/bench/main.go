package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

func main() {
	b := bench{out: os.Stdout}
	flag.StringVar(&b.binary, "lockcheck", "./lockcheck", "the binary to measure")
	least := flag.Int("from", 100_000, "the length of the shortest mixed history, in operations")
	most := flag.Int("to", 10_000_000, "the length of the longest, by factors of ten")
	trials := flag.Int("trials", 100, "how many short runs to make of each lock; 0 for none")
	locks := flag.String("locks", "memory,redis,etcd", "the locks of these runs")
	slots := flag.Int("slots", 2*runtime.NumCPU(), "how many of them to make side by side, at most")
	apart := flag.Bool("apart", true, "make a tenth of them as single runs, too, for comparison")
	judge := flag.Bool("judge", true, "measure what it takes to judge histories")
	moments := flag.Bool("moments", true, "measure how soon faults are in force that wait for a moment")
	flag.Parse()
	var err error
	if *judge {
		err = b.run(*least, *most)
	}
	if err == nil && *trials > 0 {
		err = b.trials(context.Background(), *locks, *trials, *slots, *apart)
	}
	if err == nil && *moments {
		err = b.moments(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures a binary and writes tables.
type bench struct {
	binary, folder string
	out            io.Writer
	before         measured // of the shape of the line before, if it is the same one
}

// measured is what it took to judge a history.
type measured struct {
	name   string
	took   time.Duration
	cpu    time.Duration // of all cores; what else runs hardly changes it
	memory int64         // peak, KiB
}

func (b *bench) run(least, most int) error {
	folder, err := os.MkdirTemp("", "lockcheck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b.folder = folder
	fmt.Fprint(b.out, "| history | operations | size | faults | answers lost | overlaps | stale writes | updates lost | time | CPU | ratio | peak memory | ratio |\n",
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, s := range []shape{
		{name: "holds only, 1 key, 16 workers", workload: history.WorkloadMutex, keys: 1, workers: 16, fate: mix},
		{name: "updates, 1 key, 16 workers", workload: history.WorkloadSet, keys: 1, workers: 16, fate: mix},
		{name: "updates, 100 keys, 200 workers", workload: history.WorkloadSet, keys: 100, workers: 200, fate: mix},
		{name: "updates, 10,000 keys, 1,000 workers", workload: history.WorkloadSet, keys: 10_000, workers: 1_000, fate: mix},
	} {
		for s.operations = least; s.operations <= most; s.operations *= 10 {
			if err := b.measure(s); err != nil {
				return err
			}
		}
	}
	return b.quadratic()
}

// quadratic measures what once took the square of its time: a violation and a fault for
// each hold, and workers that get nothing but errors while others are served.
func (b *bench) quadratic() error {
	alternating := func(n int) fate {
		if n%2 == 0 {
			return double
		}
		return stepped
	}
	for n := 8_000; n <= 32_000; n *= 2 {
		if err := b.measure(shape{
			name: "as many overlaps as faults, 1 key, 3 workers", workload: history.WorkloadMutex, keys: 1, workers: 3,
			operations: 4 * n, fate: alternating,
		}); err != nil {
			return err
		}
	}
	for n := 750; n <= 3_000; n *= 2 {
		if err := b.measure(shape{
			name: "a worker for 100 operations, half of them stuck", workload: history.WorkloadMutex, keys: 1, workers: n / 2, stuck: n / 2,
			operations: 100 * n, fate: func(int) fate { return well },
		}); err != nil {
			return err
		}
	}
	return nil
}

// measure writes a history, has it judged and removes it.
func (b *bench) measure(s shape) error {
	path := filepath.Join(b.folder, "history.jsonl")
	happened, err := writeFile(path, s)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	command := exec.Command(b.binary, "analyze", b.folder)
	began := time.Now()
	said, err := command.CombinedOutput()
	m := measured{name: s.name, took: time.Since(began)}
	const violation = 1 // exit code
	if err == nil || command.ProcessState.ExitCode() != violation {
		return fmt.Errorf("analyze: %v, want a violation\n%s", err, said)
	}
	m.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	m.memory = command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	found, err := b.results()
	if err != nil {
		return err
	}
	if err := happened.in(found, s.workload); err != nil {
		return fmt.Errorf("%s, %d operations: %w", s.name, s.operations, err)
	}
	stale := found.Finding(checker.NoStaleWrite).Total
	cpu, memory := "", ""
	if b.before.name == m.name {
		cpu = fmt.Sprintf("%.1f", m.cpu.Seconds()/b.before.cpu.Seconds())
		memory = fmt.Sprintf("%.1f", float64(m.memory)/float64(b.before.memory))
	}
	b.before = m
	_, err = fmt.Fprintf(b.out, "| %s | %d | %d MB | %d | %d | %d | %d | %d | %.2f s | %.2f s | %s | %d MiB | %s |\n", s.name, s.operations, info.Size()/1e6,
		happened.faults, happened.unknown, happened.overlaps, stale, happened.lost, m.took.Seconds(), m.cpu.Seconds(), cpu, m.memory>>10, memory)
	return err
}

// in compares what happened with what was found.
func (t truth) in(r checker.Results, workload string) error {
	var counted int64
	for _, f := range r.Faults {
		if f.Counts() {
			counted++
		}
	}
	for _, c := range []struct {
		what           string
		found, happens int64
	}{
		{"overlaps", r.Overlaps.Total(), t.overlaps},
		{"lost updates", r.Updates.Lost, t.lost},
		{"acquires without an answer", r.Operations.Unknown, t.unknown},
		{"faults that count", counted, t.faults},
		{"stuck workers", int64(r.Finding(checker.Liveness).Total), t.stuck},
	} {
		if c.found != c.happens {
			return fmt.Errorf("%d %s were found, and there are %d", c.found, c.what, c.happens)
		}
	}
	switch stale := r.Finding(checker.NoStaleWrite).Total; {
	case t.overlaps+t.stuck == 0:
		return fmt.Errorf("nothing goes wrong in it")
	case workload == history.WorkloadSet && (stale == 0 || t.lost == 0):
		return fmt.Errorf("%d stale writes and %d lost updates", stale, t.lost)
	}
	return nil
}

// results reads what analyze wrote, and removes the files of the history.
func (b *bench) results() (checker.Results, error) {
	file, err := os.Open(filepath.Join(b.folder, "results.json"))
	if err != nil {
		return checker.Results{}, err
	}
	defer file.Close()
	d, err := reports.ReadDocument(file)
	if err != nil {
		return checker.Results{}, err
	}
	entries, err := os.ReadDir(b.folder)
	if err != nil {
		return checker.Results{}, err
	}
	for _, e := range entries {
		err = cmp.Or(err, os.Remove(filepath.Join(b.folder, e.Name())))
	}
	return d.Results, err
}

func writeFile(path string, s shape) (truth, error) {
	file, err := os.Create(path)
	if err != nil {
		return truth{}, err
	}
	t, err := s.write(file)
	return t, cmp.Or(err, file.Close())
}
