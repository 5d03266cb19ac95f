package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// message is a line from a check that runs in a process of its own: a result or the end.
type message struct {
	Result *Result `json:"result,omitempty"`
	Ended  bool    `json:"ended,omitempty"`
	Client string  `json:"client,omitempty"` // at the end; as in Report
}

// Serve runs a check and writes messages for Follow. It ends early when its input ends.
func Serve(ctx context.Context, c Config, input io.Reader, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, input)
	}()
	var failed error
	encoder := json.NewEncoder(output)
	report, err := Run(ctx, c, func(r Result) {
		if failed = errors.Join(failed, encoder.Encode(message{Result: &r})); failed != nil {
			cancel()
		}
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	return encoder.Encode(message{Ended: true, Client: report.Client})
}

// Follow reads what Serve writes, and calls each, unless nil, with each result. With an error, the report has
// the results before it.
func Follow(input io.Reader, each func(Result)) (Report, error) {
	var report Report
	for decoder := json.NewDecoder(input); ; {
		var m message
		switch err := decoder.Decode(&m); {
		case err != nil:
			return report, fmt.Errorf("the check ended early: %w", err)
		case m.Ended:
			report.Client = m.Client
			return report, nil
		case m.Result == nil:
			continue // of a later version
		}
		report.Results = append(report.Results, *m.Result)
		if each != nil {
			each(*m.Result)
		}
	}
}
