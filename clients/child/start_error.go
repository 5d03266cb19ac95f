package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// StartError says why a program of a user could not be started, and what to do about it. The kernel has one word for a
// program that is missing and for one whose interpreter is.
type StartError struct {
	Why string
	Err error // of the system
}

func (e *StartError) Error() string { return e.Why }
func (e *StartError) Unwrap() error { return e.Err }

// startError puts the error of a command that did not start in words. An error that it does not know stays as it is.
func startError(command *exec.Cmd, err error) error {
	if why := whyNotStarted(command, err); why != "" {
		return &StartError{Why: why, Err: err}
	}
	return err
}

func whyNotStarted(command *exec.Cmd, err error) string {
	name := command.Path
	if folder, problem := os.Stat(command.Dir); command.Dir != "" && (problem != nil || !folder.IsDir()) {
		return fmt.Sprintf("there is no folder %s to start it in", command.Dir)
	}
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(command.Dir, name)
	}
	file, problem := os.Stat(path)
	switch {
	case errors.Is(err, exec.ErrNotFound) && problem == nil && file.Mode().IsRegular():
		return fmt.Sprintf("no folder of PATH has a program %q; write ./%s for the file here", name, name)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("no folder of PATH has a program %q; install it, or write its path", name)
	case errors.Is(problem, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s; correct the path in the command", path)
	case problem != nil:
		return ""
	case file.IsDir():
		return fmt.Sprintf("%s is a folder; name the program in it", path)
	case file.Mode()&0o111 == 0:
		return fmt.Sprintf("%s is not executable; run chmod +x %s, or write its interpreter before it%s", path, path, example(path))
	}
	return unlike(path, err)
}

// interpreters are those of files whose names tell.
var interpreters = map[string]string{".py": "python3", ".js": "node", ".mjs": "node", ".rb": "ruby", ".sh": "sh", ".php": "php", ".pl": "perl"}

// example is how a script is written with its interpreter; "" if its name does not tell that.
func example(path string) string {
	interpreter := interpreters[filepath.Ext(path)]
	if interpreter == "" {
		return ""
	}
	return fmt.Sprintf(", as in %s %s", interpreter, path)
}

// unlike says what is wrong with the contents of an executable file that the kernel refused.
func unlike(path string, err error) string {
	line, isScript := firstLine(path)
	switch {
	case isScript && strings.HasSuffix(line, "\r"):
		return fmt.Sprintf("the first line of %s ends as lines do on Windows, which makes another name of its interpreter; store the file with Unix line ends", path)
	case isScript && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s begins with #!%s, and there is no such interpreter; install it, or correct the first line", path, line)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s needs a loader of programs that is not here, as one built for another distribution does; build it for this one, or link it statically", path)
	case errors.Is(err, syscall.ENOEXEC) && !isScript:
		return fmt.Sprintf("%s is neither a program for this machine nor a script; if it is a script, begin it with a line like #!/bin/sh, or write its interpreter before it%s", path, example(path))
	}
	return ""
}

// firstLine is what follows #! in the first line of a script.
func firstLine(path string) (line string, isScript bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer file.Close()
	begin := make([]byte, 256) // the kernel reads no more, either
	n, _ := io.ReadFull(file, begin)
	first, _, _ := bytes.Cut(begin[:n], []byte("\n"))
	return strings.CutPrefix(string(first), "#!")
}
