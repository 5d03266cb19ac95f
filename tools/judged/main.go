// Command judged prints one line per history: its verdict, the verdict and count of each property, the causes,
// and the counts of overlaps and updates. The outputs of two versions of the checker differ where their
// judgements differ:
//
//	go run ./tools/judged -simulated 50000 > after.txt
//
// It judges the corpus, the cases and the given folders.
package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/simulation"
	"lockcheck/history"
	"lockcheck/history/jepsen"
)

// unhurried leaves porcupine only its limit of steps, which is the same on every machine.
var unhurried = checker.Options{PorcupineLimit: time.Hour, NoHolds: true}

func main() {
	simulated := flag.Uint64("simulated", 0, "how many simulated histories to judge as well")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	folders := append([]string{"checker/testdata/corpus", "checker/testdata/cases", "checker/testdata/schema2"}, flag.Args()...)
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return printFile(out, path)
		}); err != nil {
			log.Fatal(err)
		}
	}
	for seed := range *simulated {
		world := simulation.Random(rand.New(rand.NewPCG(seed, 2)), seed%2 == 0)
		h, _ := simulation.Run(seed, world)
		printLine(out, fmt.Sprint("simulated ", seed), checker.Check(h, unhurried))
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// printFile judges a file if its name is that of a history.
func printFile(out io.Writer, path string) error {
	foreign, ours := strings.Contains(path, ".edn"), strings.Contains(path, ".jsonl")
	if !foreign && !ours {
		return nil
	}
	text, err := opened(path)
	if err != nil {
		return err
	}
	defer text.Close()
	h, err := read(text, filepath.Dir(path), foreign)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	printLine(out, path, checker.Check(h, unhurried))
	return nil
}

func opened(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	return gzip.NewReader(file)
}

// read reads a history. For a foreign history, import.json in its folder has the options.
func read(text io.Reader, folder string, foreign bool) (*history.History, error) {
	if !foreign {
		return history.ReadAll(text)
	}
	options := jepsen.Options{Permits: 1, Reentrant: 1}
	stored, err := os.ReadFile(filepath.Join(folder, "import.json"))
	if err == nil {
		err = json.Unmarshal(stored, &options)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return jepsen.Read(text, options)
}

func printLine(out io.Writer, name string, r checker.Results) {
	fmt.Fprintf(out, "%s: %s, %d incidents", name, r.Verdict, r.Incidents)
	for _, f := range r.Findings {
		fmt.Fprintf(out, "; %s %s %d required %t tolerated %t causes %v listed", f.Property, f.Verdict, f.Total, f.Required, f.Tolerated, f.Causes)
		for _, i := range f.Violations {
			fmt.Fprintf(out, " %s/%s/%v/%v/%d-%d/%d", i.Class, i.Cause, i.Grants, i.Faults, i.From, i.To, i.Element)
		}
	}
	for _, f := range r.Faults {
		fmt.Fprintf(out, "; %s counts %t outlasted %t healed %t", f.ID, f.Counts(), f.Outlasted, f.Healed)
	}
	fmt.Fprintf(out, "; %+v; %+v; %+v; %+v; %+v", r.Overlaps, r.Updates, r.Operations, r.Fence, r.Orphans)
	fmt.Fprintf(out, "; %+v; %+v; %+v\n", r.Failovers, r.LossNotifications, r.Noticed)
}
