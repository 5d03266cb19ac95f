package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGuide: each way to ask prints its answer, and a wrong question is refused.
func TestGuide(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	folder := t.TempDir()
	page, evidence := filepath.Join(folder, "guide.html"), filepath.Join(folder, "evidence.jsonl")
	s.want(s.run("guide", "--html", page), exitOK, "page    "+page, "")
	text, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(text, []byte("Which lock to choose")) {
		t.Errorf("%.200s, %v", text, err)
	}
	for range 2 {
		s.want(s.run("guide", "collect", "--into", evidence, s.store), exitOK, "", "0 runs added, 0 in all")
	}
	s.want(s.run("guide"), exitOK, "# Which lock to choose", "")
	s.want(s.run("guide", "--have", "postgres", "--work", "10m"), exitOK, "Use postgres-session", "")
	s.want(s.run("guide", "--need", "failover", "--have", "k8s", "--failover", "30s"), exitOK, "Use k8s-lease", "")
	s.want(s.run("guide", "--why", "etcd/pause:leader"), exitOK, "etcd 3.6.16", "")
	s.want(s.run("guide", "stories"), exitOK, "card", "")
	s.want(s.run("guide", "--need", "speed"), exitUsage, "", "there are data, once, waste, failover, infra and long")
	s.want(s.run("guide", "--have", "oracle"), exitUsage, "", "--have oracle")
	s.want(s.run("guide", "--why", "etdc/pause"), exitUsage, "", "no run of a lock named")
	s.want(s.run("guide", "--store", filepath.Join(folder, "nowhere")), exitUsage, "", "no runs are stored")
	s.want(s.run("guide", "--html", filepath.Join(folder, "nowhere", "guide.html")), exitUsage, "", "the folder cannot be used")
	s.want(s.run("guide", "collect"), exitUsage, "", "name the folders")
	s.want(s.run("guide", "x"), exitUsage, "", "")
	s.term = true
	s.want(s.run("guide"), exitOK, "  lockcheck guide --html guide.html", "")
}
