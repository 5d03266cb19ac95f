package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/application/ask"
	"lockcheck/internal/application/replica"
)

// servers are those of the application on Docker, its replicas as children of lockcheck; nil for one on this machine.
func (t *appTest) servers() []clusters.CustomServer {
	var servers []clusters.CustomServer
	for _, s := range t.App.Servers {
		s.Node = s.Name
		if s.Replica {
			s.Launched = func(place clusters.Place, command []string) ([]string, map[string]string) {
				return t.replicaConfig(s.Name).Launched(place.Folder, command)
			}
		}
		servers = append(servers, s.CustomServer)
	}
	return servers
}

func (t *appTest) replicaConfig(name string) replica.Config {
	says := make(map[history.Function][]string)
	for f, patterns := range t.App.Says {
		if f != history.Accepted {
			says[f] = patterns
		}
	}
	return replica.Config{Name: name, Says: says, Key: t.App.Name, Restart: t.App.Restart, Env: t.resourceOf(name)}
}

// startPrograms starts the askers, the load and, on this machine, the replicas.
func (r *appRun) startPrograms(ctx context.Context) error {
	if err := r.startReplicas(ctx); err != nil {
		return err
	}
	return errors.Join(r.startAskers(ctx), r.startLoad(ctx))
}

func (r *appRun) startReplicas(ctx context.Context) error {
	if len(r.App.Servers) > 0 {
		for i, s := range r.App.Servers {
			if s.Replica {
				r.replicas = append(r.replicas, r.cluster.Servers()[i])
			}
		}
		return nil
	}
	for n, name := range r.App.Replicas {
		config := r.replicaConfig(name)
		config.Folder = r.App.Folder
		config.Env = append(append(r.shared(), config.Env...), fmt.Sprintf("%s=%d", replicaVariable, n+1))
		args, err := r.launched(name, config)
		if err != nil {
			return err
		}
		node, err := r.cluster.Start(ctx, clusters.Program{Name: name, Args: args, Restarts: true})
		if err != nil {
			return err
		}
		node.Clock = errClockOfMachine
		r.replicas = append(r.replicas, node)
	}
	return nil
}

const (
	// sharedVariable is the folder that the replicas of a run on this machine, its load and its commands share; it is
	// new for each run. replicaVariable is the number of a replica.
	sharedVariable  = "LOCKCHECK_SHARED"
	replicaVariable = "LOCKCHECK_REPLICA"
)

// shared is the environment of everything of the user's that runs on this machine; nil on Docker.
func (r *appRun) shared() []string {
	if len(r.App.Servers) > 0 {
		return nil
	}
	return append(slices.Clone(r.App.Environment), sharedVariable+"="+r.cluster.Folder())
}

// launched writes what a replica on this machine must know, and returns the arguments of its launcher. Its
// environment may hold a password.
func (r *appRun) launched(name string, config replica.Config) (args []string, err error) {
	folder := filepath.Join(r.cluster.Folder(), name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	args, files := config.Launched(folder, r.App.Command)
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// startAskers starts one program for questions to databases and servers, and one in the image of the application
// for commands.
func (r *appRun) startAskers(ctx context.Context) error {
	var commands, others []ask.Question
	for _, q := range r.App.Questions {
		if q.Kind == ask.Shell {
			q.Folder, q.Env = r.folderOfCommands(), append(r.shared(), r.resourceOf(history.Asker)...)
			commands = append(commands, q)
		} else {
			others = append(others, r.located(q))
		}
	}
	for _, part := range []struct {
		questions []ask.Question
		image     clusters.ProgramImage
		suffix    string
	}{{others, clusters.ProgramImage{}, ""}, {commands, r.imageOfReplicas(), "-commands"}} {
		if len(part.questions) == 0 {
			continue
		}
		program := r.program(history.Asker+part.suffix, part.image)
		node, err := r.startProgram(ctx, program, ask.Command, ask.Config{Process: program.Name, Every: r.App.Every, Questions: part.questions})
		if err != nil {
			return err
		}
		r.askers = append(r.askers, node)
	}
	return nil
}

func (r *appRun) startLoad(ctx context.Context) (err error) {
	if r.App.Load == nil {
		return nil
	}
	program := r.program(history.Load, r.App.Load.Image)
	r.load, err = r.startProgram(ctx, program, replica.Command, replica.Config{
		Name: history.Load, Command: r.App.Load.Command, Folder: r.folderOfCommands(), Env: slices.Concat(r.shared(), r.resourceOf(history.Load), r.App.Load.Environment),
		Says: map[history.Function][]string{history.Accepted: r.App.Says[history.Accepted]},
	})
	return err
}

// program describes a process beside the application, which no fault hits.
func (r *appRun) program(name string, image clusters.ProgramImage) clusters.Program {
	p := clusters.Program{Name: name, Networked: true, Image: image}
	if image != (clusters.ProgramImage{}) {
		p.Mounts = []string{r.App.Folder + ":" + mountedFolder}
	}
	return p
}

// mountedFolder is where a program in the image of the application finds the folder of the app file.
const mountedFolder = "/app-file"

func (r *appRun) folderOfCommands() string {
	if len(r.App.Servers) > 0 {
		return mountedFolder
	}
	return r.App.Folder
}

func (r *appRun) imageOfReplicas() clusters.ProgramImage {
	for _, s := range r.App.Servers {
		if s.Replica {
			return s.Image
		}
	}
	return clusters.ProgramImage{}
}

// programs lists everything whose output is events.
func (r *appRun) programs() []*clusters.Node {
	all := slices.Concat(r.replicas, r.askers)
	for _, program := range []*clusters.Node{r.load, r.resource} {
		if program != nil {
			all = append(all, program)
		}
	}
	return all
}

// begin records what all of them say and watches over all processes.
func (r *appRun) begin() {
	for _, program := range r.programs() {
		r.follow.Go(func() {
			if err := r.recorder.Follow(program.Name, program.Output, program.CanRestart() == nil); err != nil {
				r.fail(err)
			}
		})
		r.watch(program)
	}
	for _, server := range r.cluster.Servers() {
		if !slices.Contains(r.replicas, server) {
			r.watch(server)
		}
	}
}

// collect ends the load, gives the application time for what was accepted, asks every invariant once more and ends
// the replicas. When ctx is done it waits for nothing.
func (r *appRun) collect(ctx context.Context, interrupt <-chan struct{}) error {
	r.stop()
	var errs []error
	if r.load != nil {
		errs = append(errs, r.end(ctx, []*clusters.Node{r.load}, interrupt))
		r.awaitKept(ctx, interrupt)
	}
	r.progress.Step("asking every invariant once more")
	r.recorder.Phase(history.PhaseFinal, "")
	errs = append(errs, command(r.askers, ask.Final), r.awaitExits(ctx, r.askers, nil), r.end(ctx, r.replicas, interrupt))
	if r.resource != nil {
		errs = append(errs, r.end(ctx, []*clusters.Node{r.resource}, nil))
	}
	for _, program := range r.programs() {
		program.EndOutput()
	}
	if err := errors.Join(errs...); err != nil {
		return err // an output that never ends must not be waited for
	}
	return r.awaitOutputs(ctx)
}

// awaitKept gives the application the time that it may take to store the work that it accepted last.
func (r *appRun) awaitKept(ctx context.Context, interrupt <-chan struct{}) {
	longest := settleTime
	for _, q := range r.App.Questions {
		if q.Invariant.Kind == history.InvariantKept {
			longest = max(longest, q.Invariant.Within)
		}
	}
	r.progress.Status("waiting %s for the work that was accepted last", longest)
	select {
	case <-time.After(longest):
	case <-interrupt:
	case <-ctx.Done():
	}
}
