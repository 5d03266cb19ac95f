// Package ask asks the invariants of a user's application: queries, requests and commands, each again and again
// while faults are in force, and once more at the end. Nothing that is asked is trusted: every answer is bounded in
// size and time, and a question without a whole answer is recorded as unknown.
package ask

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"lockcheck/history"
	"lockcheck/workloads"
)

// Command is the name of lockcheck's own command that runs Run.
const Command = "ask"

// Final is the line that tells an asker to ask each question once more, and then to end.
const Final = "final"

// Kinds of questions, by what is asked.
const (
	Postgres = "postgres"
	MySQL    = "mysql" // and MariaDB
	Redis    = "redis"
	HTTP     = "http"
	Shell    = "command"
	Resource = "resource" // a key of lockcheck's resource, by URL
)

// Config is what an asker is told.
type Config struct {
	Process   string        `json:"process"`  // of the events
	Every     time.Duration `json:"every_ns"` // from one asking of a question to the next
	Questions []Question    `json:"questions"`
}

// Question is an invariant, and how it is asked.
type Question struct {
	Invariant history.Invariant `json:"invariant"`
	Kind      string            `json:"kind"`
	URL       string            `json:"url,omitempty"`  // of a database, or what is requested
	Text      string            `json:"text,omitempty"` // a query, a command line of Redis, or a shell command
	// Folder and Env are those of a shell command: where it runs, and what is added to its environment.
	Folder string   `json:"folder,omitempty"`
	Env    []string `json:"env,omitempty"`
	// Timeout is how long one answer may take; 0 for DefaultTimeout.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// DefaultTimeout is how long one answer may take unless the question says otherwise.
const DefaultTimeout = 5 * time.Second

// finalLimit is how long a question is asked at the end until it is answered.
const finalLimit = 20 * time.Second

// source is what is asked. Each question has its own, so that no answer waits for that of another question.
type source interface {
	// ready makes what asking needs: a connection, a transaction. It makes a new connection where there is none.
	ready(context.Context) error
	// ask puts the rows into the answer. An error means that the answer is unknown, whatever it has by then.
	ask(context.Context, *answer) error
	// settle ends what ready began. A connection on which something failed is closed.
	settle(ctx context.Context, failed bool)
	// cut closes all connections, so that no library can wait for longer than it was told to.
	cut()
}

// Check says why a question cannot be asked by this program, whatever is asked; nil if it can.
func (q Question) Check() error {
	_, err := q.open()
	return err
}

// open makes the source of a question. It connects to nothing.
func (q Question) open() (source, error) {
	var opened source
	var err error
	switch {
	case q.Invariant.Name == "":
		return nil, errors.New("a question without a name")
	case !slices.Contains(history.QuestionKinds(), q.Invariant.Kind):
		err = fmt.Errorf("unknown kind of invariant %q", q.Invariant.Kind)
	case q.Kind == HTTP, q.Kind == Resource:
		opened, err = openRequest(q)
	case q.Text == "":
		err = errors.New("there is nothing to ask")
	case q.Kind == Shell:
		opened = openCommand(q)
	default:
		opened, err = openDatabase(q)
	}
	if err != nil {
		return nil, fmt.Errorf("invariant %s: %w", q.Invariant.Name, err)
	}
	return opened, nil
}

// Run asks each question every so often until its input ends, or says Final.
func Run(ctx context.Context, config Config, input io.Reader, output io.Writer) error {
	if config.Every <= 0 || len(config.Questions) == 0 {
		return fmt.Errorf("%s: %d questions every %s", Command, len(config.Questions), config.Every)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	record, final := workloads.NewEmitter(config.Process, output), make(chan struct{})
	var loops []*loop
	for _, q := range config.Questions {
		source, err := q.open()
		if err != nil {
			return fmt.Errorf("%s: %w", Command, err)
		}
		loops = append(loops, &loop{question: q, source: source, every: config.Every, record: record, final: final})
	}
	go func() {
		defer cancel()
		awaitFinal(input, final)
	}()
	var running sync.WaitGroup
	for _, l := range loops {
		running.Go(func() { l.run(ctx) })
	}
	running.Wait()
	return record.Err()
}

// awaitFinal closes final when the input says Final, and returns when it ends.
func awaitFinal(input io.Reader, final chan<- struct{}) {
	said := false
	for lines := bufio.NewScanner(input); lines.Scan(); {
		if lines.Text() == Final && !said {
			said = true
			close(final)
		}
	}
}

// loop asks one question again and again.
type loop struct {
	question Question
	source   source
	every    time.Duration
	record   *workloads.Emitter
	final    <-chan struct{}
}

// run asks until ctx ends, until nobody takes the events any more, or once more after final.
func (l *loop) run(ctx context.Context) {
	defer l.source.cut()
	defer l.source.settle(ctx, true)
	for l.record.Err() == nil {
		next := time.Now().Add(l.every)
		size, _ := l.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-l.final:
			l.askAtLast(ctx)
			return
		case <-time.After(max(time.Until(next), pause(size))):
		}
	}
}

// askAtLast asks until there is an answer, or until finalLimit has passed.
func (l *loop) askAtLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finalLimit)
	defer cancel()
	for {
		if _, answered := l.ask(ctx); answered {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.every):
		}
	}
}

// passed says whether the deadline of ctx has passed. That of a connection can be noticed before ctx ends.
func passed(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return limited && !time.Now().Before(deadline)
}

// ask asks once and records what came of it. It returns the size of the answer in bytes.
func (l *loop) ask(ctx context.Context) (size int, answered bool) {
	limit := cmp.Or(l.question.Timeout, DefaultTimeout)
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(asking, l.source.cut)()
	a := &answer{kind: l.question.Invariant.Kind}
	event := history.Event{F: history.Asked, Type: history.Info, Key: l.question.Invariant.Name, From: history.Now()}
	err := l.source.ready(asking)
	if err == nil {
		event.From = history.Now()
		err = l.source.ask(asking, a)
	}
	switch {
	case ctx.Err() == context.Canceled:
		return 0, false // the asker ends, which says nothing about the question
	case err == nil:
		event.Type, event.Answer = a.verdict(), &a.Answer
	case passed(asking):
		event.Error = fmt.Sprintf("no answer within %s", limit)
	default:
		event.Error = shortened(err.Error())
	}
	l.record.Emit(event)
	l.source.settle(asking, err != nil || a.cut)
	return a.size, err == nil
}
