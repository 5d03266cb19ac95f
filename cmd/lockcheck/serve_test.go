package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServe: the address is printed, answers only on this machine, and stops serving properly at the first
// Ctrl-C.
func TestServe(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	var stderr bytes.Buffer
	signals, code := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		defer write.Close()
		code <- run(t.Context(), &system{
			args: []string{"serve", "--store", t.TempDir(), "--port", "0"}, stdout: write, stderr: &stderr, signals: signals,
		})
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	address := strings.TrimSuffix(line, "\n")
	if err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("%q was printed, %v", line, err)
	}
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !bytes.Contains(page, []byte("There are no runs")) {
		t.Errorf("%v\n%s", err, page)
	}
	signals <- os.Interrupt
	if got := <-code; got != exitOK || stderr.Len() > 0 {
		t.Errorf("exit code %d, %q on stderr", got, &stderr)
	}
	if response, err := http.Get(address); err == nil {
		response.Body.Close()
		t.Error("it still answers")
	}
}

// TestServeRefused: what cannot be served is reported at once.
func TestServeRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, taken, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	aRun := t.TempDir()
	if err := os.WriteFile(filepath.Join(aRun, "history.jsonl"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--store", filepath.Join(aRun, "missing")}, exitUsage, "the store cannot be opened: open"},
		{[]string{"--store", filepath.Join(aRun, "history.jsonl")}, exitUsage, "not a directory"},
		{[]string{"--store", aRun}, exitUsage, "is a single run; name the folder of stored runs that contains it"},
		{[]string{"--store", s.store, "--port", taken}, exitBroken, "address already in use"},
	} {
		s.want(s.run(append([]string{"serve"}, c.args...)...), c.code, "", c.want)
		if s.stdout != "" {
			t.Errorf("%q: %q on stdout", c.args, s.stdout)
		}
	}
}
