package swarm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup"
	"lockcheck/internal/suites"
)

// Environment variables of a task.
const (
	managerVariable = "LOCKCHECK_MANAGER" // address of the manager
	tokenVariable   = "LOCKCHECK_TOKEN"   // proves to the manager that a request is from its task
	jobVariable     = "LOCKCHECK_JOB"     // name of the job
	partVariable    = "LOCKCHECK_PART"    // number of the part, from 0
	partsVariable   = "LOCKCHECK_PARTS"
)

// worker runs one part.
type worker struct {
	manager, token, job string
	shard               suites.Shard
	binary              string
	client              *http.Client
	// every is the interval at which the manager is asked whether it still wants the part. patience is how many
	// consecutive questions it may leave unanswered.
	every    time.Duration
	patience int
}

// Work runs the part that the environment names and sends the result to the manager. If the part fails, Work
// sends the reason. Work ends without an error if the manager no longer waits.
func Work(ctx context.Context, binary string, env func(string) string) error {
	w := worker{
		manager: env(managerVariable), token: env(tokenVariable), job: env(jobVariable), binary: binary,
		client: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Minute}}, every: time.Minute, patience: 5,
	}
	of, err := strconv.Atoi(env(partsVariable))
	if err != nil || w.manager == "" {
		return errors.Join(errors.New("this is what a task of lockcheck --swarm runs, and of no use elsewhere"), err)
	}
	n, err := strconv.Atoi(env(partVariable))
	if err != nil {
		n = 0 // Swarm's template is empty for the number 0
	}
	w.shard = suites.Shard{N: n + 1, Of: of}
	err = w.work(ctx)
	if err == nil || errors.Is(err, errUnwanted) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace/3)
	defer cancel()
	return errors.Join(err, w.send(ctx, failedPath, strings.NewReader(err.Error())))
}

// errUnwanted says that the manager no longer waits for the part.
var errUnwanted = errors.New("the manager no longer waits for this part")

// folderOf is the working folder of a task. It has the same path in the task as on its node, because the node's
// engine mounts files of locks. Its name is short, because sockets need short paths.
func folderOf(job string, part int) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", job, part))
}

func (w worker) work(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	// A killed attempt at this task may have left something.
	if err := cleanOf(ctx, func(other string) bool { return other == host }); err != nil {
		return err
	}
	folder := folderOf(w.job, w.shard.N)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	return w.make(ctx, folder)
}

func (w worker) make(ctx context.Context, folder string) error {
	arguments, err := w.input(ctx, folder)
	if err != nil {
		return err
	}
	if err := w.run(ctx, folder, arguments); err != nil {
		return err
	}
	r, pipe := io.Pipe()
	go func() { pipe.CloseWithError(pack(pipe, map[string]string{".": filepath.Join(folder, outFolder)})) }()
	defer r.Close()
	return w.send(ctx, resultPath, r)
}

// Clean ends the tasks of a job on this node, and removes what they left.
func Clean(ctx context.Context, job string) error {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer docker.Close()
	if err := docker.StopJob(ctx, job, grace); err != nil {
		return err
	}
	folders, err := filepath.Glob(folderOf(job, 0)[:len(folderOf(job, 0))-1] + "*")
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return errors.Join(err, cleanOf(ctx, func(host string) bool { return strings.HasPrefix(host, job+"-") }), docker.RemoveJob(ctx, job))
}

// cleanOf removes what killed tasks left, selected by host name.
func cleanOf(ctx context.Context, is func(host string) bool) error {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer docker.Close()
	_, err = cleanup.RemoveOfHosts(ctx, docker, is)
	return err
}

// Folders of a task: the part's result, and temporary files of its runs.
const (
	outFolder       = "out"
	temporaryFolder = "t"
)

func (w worker) run(ctx context.Context, folder string, arguments []string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go w.watch(ctx, end)
	temporary := filepath.Join(folder, temporaryFolder)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, w.binary, append(arguments, "--shard", w.shard.String(), "--out", outFolder)...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, io.MultiWriter(os.Stderr, &said)
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
}

// watch ends the work when the manager is gone.
func (w worker) watch(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for silent := 0; silent < w.patience; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		response, err := w.ask(ctx, http.MethodGet, alivePath, nil)
		if err != nil {
			silent++
			continue
		}
		silent = 0
		_ = response.Body.Close()
	}
	end(errUnwanted)
}

func (w worker) input(ctx context.Context, folder string) ([]string, error) {
	response, err := w.ask(ctx, http.MethodGet, inputPath, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return response.Header.Values(argumentHeader), unpack(response.Body, folder)
}

func (w worker) send(ctx context.Context, path string, body io.Reader) error {
	response, err := w.ask(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (w worker) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.manager+path+strconv.Itoa(w.shard.N), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", w.token)
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone {
		return nil, errUnwanted
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, longestFailure))
	return nil, errors.Join(fmt.Errorf("the manager says %s: %s", response.Status, strings.TrimSpace(string(text))), err)
}
