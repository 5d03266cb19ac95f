// Command bench measures how fast lockcheck judges histories, and in how much memory:
// it writes synthetic ones, has them judged from disk by the binary that users run, and
// prints one line each. An operation is an invocation and its completion. The figures
// of the last run are in docs/trust.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	binary := flag.String("lockcheck", "./lockcheck", "the binary to measure")
	least := flag.Int("from", 10_000, "the length of the shortest history, in operations")
	most := flag.Int("to", 10_000_000, "the length of the longest, by factors of ten")
	flag.Parse()
	if err := run(os.Stdout, *binary, *least, *most); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, binary string, least, most int) error {
	folder, err := os.MkdirTemp("", "lockcheck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Fprintf(out, "| workload | operations | keys | history | time | operations/s | peak memory | verdict |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, workload := range []string{mutex, set} {
		for _, keys := range []int{1, 100, 10_000} {
			for operations := least; operations <= most; operations *= 10 {
				if err := measure(out, binary, folder, shape{workload: workload, operations: operations, keys: keys}); err != nil {
					return err
				}
			}
		}
	}
	for operations := least; operations <= most; operations *= 10 {
		if err := measure(out, binary, folder, shape{workload: set, operations: operations, keys: 100, wrong: true}); err != nil {
			return err
		}
	}
	return alone(out)
}

// measure writes a history, has it judged and removes it.
func measure(out io.Writer, binary, folder string, s shape) error {
	path := filepath.Join(folder, "history.jsonl")
	if err := writeFile(path, s); err != nil {
		return err
	}
	defer os.Remove(path)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	command := exec.Command(binary, "analyze", path)
	began := time.Now()
	said, err := command.Output()
	took := time.Since(began)
	const violation = 1 // exit code
	if err != nil && (!s.wrong || command.ProcessState.ExitCode() != violation) {
		return fmt.Errorf("analyze: %w\n%s", err, said)
	}
	peak := command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB
	verdict, _, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	name := s.workload
	if s.wrong {
		name += ", 1 % granted twice"
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d MB | %.2f s | %.0f | %d MiB | %s |\n", name, s.operations, s.keys,
		info.Size()/1e6, took.Seconds(), float64(s.operations)/took.Seconds(), peak>>10, strings.Trim(verdict, ".:"))
	return nil
}

// alone measures porcupine by itself, on one key: with an owner-aware mutex, all
// answers known and no lease, the easiest there is.
func alone(out io.Writer) error {
	const limit = 10 * time.Minute
	for _, operations := range []int{10_000, 100_000} {
		var ops []porcupine.Operation
		for h := range (shape{workload: mutex, operations: operations, keys: 1}).holds() {
			ops = append(ops,
				porcupine.Operation{ClientId: h.worker, Input: acquire(h.number), Call: h.asked, Return: h.granted},
				porcupine.Operation{ClientId: h.worker, Input: -acquire(h.number), Call: h.release, Return: h.released})
		}
		began := time.Now()
		result := porcupine.CheckOperationsTimeout(model, ops, limit)
		fmt.Fprintf(out, "\nporcupine alone, %d operations of one key: %s after %.2f s\n", operations, result, time.Since(began).Seconds())
	}
	return nil
}

// acquire is the number of a hold; its negative is the release.
type acquire int

var model = porcupine.Model{
	Init: func() any { return acquire(0) },
	Step: func(state, input, _ any) (bool, any) {
		if op := input.(acquire); op > 0 {
			return state.(acquire) == 0, op
		}
		return state.(acquire) == -input.(acquire), acquire(0)
	},
}

func writeFile(path string, s shape) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := s.write(file); err != nil {
		return err
	}
	return file.Close()
}
