package runs

import (
	"fmt"
	"io"
	"os"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/history/jepsen"
	"lockcheck/present"
)

// JudgeJepsen judges a history in Jepsen's format. The error for a malformed history names the operation.
func JudgeJepsen(path string, o jepsen.Options) (Judgement, error) {
	file, err := os.Open(path)
	if err != nil {
		return Judgement{}, err
	}
	defer file.Close()
	h, err := jepsen.Read(file, o)
	if err == nil {
		err = history.Validate(h)
	}
	if err != nil {
		return Judgement{}, fmt.Errorf("%s: %w", path, err)
	}
	results := checker.Check(h, checker.Options{})
	present.Render(&results, h.Header)
	return Judgement{History: h, Results: results}, nil
}

// ExportJepsen writes the history of a run, given its folder or its file, in Jepsen's format.
func ExportJepsen(path string, w io.Writer) error {
	_, file, err := historyOf(path)
	if err != nil {
		return err
	}
	h, err := history.ReadFile(file)
	if err != nil {
		return err
	}
	if err := history.Validate(h); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	switch workload := h.Header.Workload; workload {
	case history.WorkloadJobs, history.WorkloadReadWrite:
		return BadFlag("export", "jepsen", "a history of %s says what that form does not: which jobs were done again, or who shared the lock", workload)
	}
	return jepsen.Write(w, h)
}
